/** Asks for a token, if the address brought none. */

import { type SyntheticEvent, useState } from "react";
import { describeFailure, login } from "../api/client";

export function SignIn({ problem, onDone }: { problem: string | null; onDone: () => void }) {
  const [token, setToken] = useState("");
  const [failure, setFailure] = useState(problem);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SyntheticEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await login(token.trim());
      onDone();
    } catch (error) {
      setFailure(describeFailure(error));
      setBusy(false);
    }
  };
  return (
    <main className="alone">
      <h1>handrail</h1>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <p>
          Open the address that <code>handrail serve</code> printed, or paste its token.
        </p>
        <label className="stack">
          Token
          <input
            type="password"
            autoComplete="off"
            spellCheck={false}
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {failure !== null && (
          <p className="failure" role="alert">
            <span aria-hidden="true">✗</span> <span>{failure}</span>
          </p>
        )}
        <div className="row">
          <button type="submit" className="primary" disabled={busy || token.trim() === ""}>
            Sign in
          </button>
        </div>
      </form>
    </main>
  );
}
