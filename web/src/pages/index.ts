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

type Loader = () => Promise<{ default: ComponentType<PageProps> }>;

function page(name: IconName, title: string, key: string, load: Loader): Page {
  return { name, title, key, view: lazy(load) };
}

export const PAGES: readonly Page[] = [
  page("tasks", "Tasks", "t", () => import("./tasks")),
  page("inbox", "Inbox", "i", () => import("./inbox")),
  page("tools", "Tools", "o", () => import("./tools")),
  page("changes", "Changes", "c", () => import("./changes")),
  page("audit", "Audit", "a", () => import("./audit")),
  page("policy", "Policy", "p", () => import("./policy")),
  page("processes", "Processes", "r", () => import("./processes")),
  page("settings", "Settings", "s", () => import("./settings")),
];
