import { Empty } from "../parts/states";

export default function ToolsPage() {
  return (
    <div className="page">
      <h1>Tools</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
