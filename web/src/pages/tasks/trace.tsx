import { Empty } from "../../parts/states";
import { Link, pathTo } from "../../router";

export default function TaskTrace({ task }: { task: string }) {
  return (
    <div className="page">
      <Link to={pathTo("tasks", task)}>‹ Conversation</Link>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
