import { Empty } from "../parts/states";

export default function InboxPage() {
  return (
    <div className="page">
      <h1>Inbox</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
