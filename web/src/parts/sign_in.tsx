/** Asks for a token, if the address brought none. */

import { useState } from "react";
import { login } from "../api/client";
import { useAction } from "../state/action";
import { Form } from "./fields";
import { Failure } from "./states";

export function SignIn({ problem, onDone }: { problem: string | null; onDone: () => void }) {
  const [token, setToken] = useState("");
  const action = useAction(problem);
  const send = () =>
    action.run(async () => {
      await login(token.trim());
      onDone();
    });
  const ready = !action.busy && token.trim() !== "";
  return (
    <main className="alone">
      <h1>handrail</h1>
      <Form ready={ready} onSend={send}>
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
        {action.error !== null && <Failure error={action.error} />}
        <div className="row">
          <button type="submit" className="primary" disabled={!ready}>
            Sign in
          </button>
        </div>
      </Form>
    </main>
  );
}
