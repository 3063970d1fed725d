/** Signs in, then shows the shell. */

import { useEffect, useState } from "react";
import { describeFailure, onUnauthorized, request, RequestFailure } from "./api/client";
import { loginFromAddress } from "./api/session";
import type { ServerInfo } from "./api/types";
import { SignIn } from "./parts/sign_in";
import { Failure, Skeleton } from "./parts/states";
import { Shell } from "./shell";

type Phase =
  | { name: "starting" }
  | { name: "signed out"; problem: string | null }
  | { name: "failed"; error: unknown }
  | { name: "ready"; info: ServerInfo };

let signIn: Promise<Phase> | null = null;

/** Once for a load of the page, although React may run an effect twice. */
function startOnce(): Promise<Phase> {
  signIn ??= start();
  return signIn;
}

async function start(): Promise<Phase> {
  let problem: string | null = null;
  try {
    await loginFromAddress();
  } catch (error) {
    problem = describeFailure(error);
  }
  return load(problem);
}

async function load(problem: string | null): Promise<Phase> {
  try {
    return { name: "ready", info: await request("GET /api/info") };
  } catch (error) {
    if (error instanceof RequestFailure && error.status === 401) return { name: "signed out", problem };
    return { name: "failed", error };
  }
}

export function App() {
  const [phase, setPhase] = useState<Phase>({ name: "starting" });
  const [slow, setSlow] = useState(false);

  useEffect(() => {
    void startOnce().then(setPhase);
    const timer = window.setTimeout(() => setSlow(true), 200);
    const stop = onUnauthorized(() =>
      setPhase((before) => (before.name === "ready" ? { name: "signed out", problem: "You were signed out." } : before)),
    );
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, []);
  useEffect(() => {
    // A token pasted into the address of a page that is open already.
    const again = () => {
      if (window.location.hash.includes("token=")) void start().then(setPhase);
    };
    window.addEventListener("hashchange", again);
    return () => window.removeEventListener("hashchange", again);
  }, []);

  switch (phase.name) {
    case "starting":
      return slow ? (
        <main className="alone">
          <Skeleton />
        </main>
      ) : null;
    case "signed out":
      return <SignIn problem={phase.problem} onDone={() => void load(null).then(setPhase)} />;
    case "failed":
      return (
        <main className="alone">
          <h1>handrail</h1>
          <Failure error={phase.error} retry={() => void load(null).then(setPhase)} />
        </main>
      );
    case "ready":
      return <Shell info={phase.info} onSignOut={() => setPhase({ name: "signed out", problem: null })} />;
  }
}
