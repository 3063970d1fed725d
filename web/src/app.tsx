/** Signs in, then shows the shell. */

import { useState } from "react";
import { describeFailure, request, RequestFailure } from "./api/client";
import { loginFromAddress } from "./api/session";
import { SignIn } from "./parts/sign_in";
import { Failure, Skeleton } from "./parts/states";
import { Shell } from "./shell";
import { useWindowEvent } from "./state/events";
import { useResource } from "./state/resource";

export function App() {
  const [login, setLogin] = useState<{ turn: number; problem: string | null }>({ turn: 0, problem: null });
  const { data, error, reload } = useResource(`info ${login.turn}`, async (signal) => {
    await loginFromAddress().catch((failure: unknown) => setLogin((before) => ({ ...before, problem: describeFailure(failure) })));
    return request("GET /api/info", { signal });
  });
  const restart = (problem: string | null) => setLogin((before) => ({ turn: before.turn + 1, problem }));
  useWindowEvent("handrail:unauthorized", () => {
    if (data !== undefined) restart("You were signed out.");
  });
  useWindowEvent("hashchange", () => {
    // A token pasted into the address of a page that is open already.
    if (window.location.hash.includes("token=")) restart(null);
  });

  if (data !== undefined) return <Shell info={data} onSignOut={() => restart(null)} />;
  if (error instanceof RequestFailure && error.status === 401) return <SignIn problem={login.problem} onDone={() => restart(null)} />;
  return (
    <main className="alone">
      {error === null ? (
        <Skeleton />
      ) : (
        <>
          <h1>handrail</h1>
          <Failure error={error} retry={reload} />
        </>
      )}
    </main>
  );
}
