import { Empty } from "../parts/states";

export default function TasksPage() {
  return (
    <div className="page">
      <h1>Tasks</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
