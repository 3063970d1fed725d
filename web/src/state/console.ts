/** What every page knows: the server, the caller, and what waits for a person. */

import { createContext, useContext } from "react";
import type { InboxList, ServerInfo } from "../api/types";
import type { Resource } from "./resource";

export interface Console {
  info: ServerInfo;
  inbox: Resource<InboxList>;
  /** Say something to screen readers. */
  announce: (text: string) => void;
}

export const ConsoleContext = createContext<Console | null>(null);

export function useConsole(): Console {
  const value = useContext(ConsoleContext);
  if (value === null) throw new Error("useConsole needs the shell around it");
  return value;
}

/** Whether the caller may change anything. */
export function useMayOperate(): boolean {
  return useConsole().info.caller.role !== "viewer";
}
