/** The live feed of a task for components. */

import { useEffect, useMemo, useSyncExternalStore } from "react";
import { TaskFeed, type TaskView } from "./socket";

/** One feed for each id while the component is there. */
export function useTaskFeed(id: string): { feed: TaskFeed; view: TaskView } {
  const feed = useMemo(() => new TaskFeed(id), [id]);
  useEffect(() => {
    feed.start();
    return () => feed.stop();
  }, [feed]);
  return { feed, view: useSyncExternalStore(feed.subscribe, feed.getView) };
}
