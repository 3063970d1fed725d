import { Empty } from "../parts/states";

export default function ProcessesPage() {
  return (
    <div className="page">
      <h1>Processes</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
