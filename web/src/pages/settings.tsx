import { Empty } from "../parts/states";

export default function SettingsPage() {
  return (
    <div className="page">
      <h1>Settings</h1>
      <Empty>This page is not here yet.</Empty>
    </div>
  );
}
