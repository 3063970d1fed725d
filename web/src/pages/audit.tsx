import { Empty } from "../parts/states";

export default function AuditPage() {
  return (
    <div className="page">
      <h1>Audit</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
