import { Empty } from "../parts/states";

export default function PolicyPage() {
  return (
    <div className="page">
      <h1>Policy</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
