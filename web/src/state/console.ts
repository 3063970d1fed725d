/** What every page knows: the server, the caller, and what waits for a person. */

import { createContext, useContext, useEffect } from "react";
import type { InboxList, ServerInfo } from "../api/types";
import type { Resource } from "./resource";

export interface Console {
  info: ServerInfo;
  inbox: Resource<InboxList>;
  /** Say something to screen readers. */
  announce: (text: string) => void;
  /** Name what the page shows, for the title of the window. */
  setSubject: (subject: string) => void;
}

export const ConsoleContext = createContext<Console | null>(null);

export function useConsole(): Console {
  const value = useContext(ConsoleContext);
  if (value === null) throw new Error("useConsole needs the shell around it");
  return value;
}

/** The title of the window while the component is there. */
export function useSubject(subject: string): void {
  const { setSubject } = useConsole();
  useEffect(() => {
    setSubject(subject);
    return () => setSubject("");
  }, [subject, setSubject]);
}

/** Whether the caller may change anything. */
export function useMayOperate(): boolean {
  return useConsole().info.caller.role !== "viewer";
}
