import { Empty } from "../parts/states";

export default function ChangesPage() {
  return (
    <div className="page">
      <h1>Changes</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
