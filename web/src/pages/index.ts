/** The pages of the rail. A page is a module with a default component; its first part of the path is its name. */

import { type ComponentType, lazy } from "react";
import type { IconName } from "../parts/icons";

export interface PageProps {
  /** The parts of the path after the name of the page: the id of a task, the number of a change. */
  parts: readonly string[];
  query: URLSearchParams;
}

export interface Page {
  name: IconName;
  title: string;
  /** The key after `g`. */
  key: string;
  view: ComponentType<PageProps>;
}

export const PAGES: readonly Page[] = [
  { name: "tasks", title: "Tasks", key: "t", view: lazy(() => import("./tasks")) },
  { name: "inbox", title: "Inbox", key: "i", view: lazy(() => import("./inbox")) },
  { name: "tools", title: "Tools", key: "o", view: lazy(() => import("./tools")) },
  { name: "changes", title: "Changes", key: "c", view: lazy(() => import("./changes")) },
  { name: "audit", title: "Audit", key: "a", view: lazy(() => import("./audit")) },
  { name: "policy", title: "Policy", key: "p", view: lazy(() => import("./policy")) },
  { name: "processes", title: "Processes", key: "r", view: lazy(() => import("./processes")) },
  { name: "settings", title: "Settings", key: "s", view: lazy(() => import("./settings")) },
];
