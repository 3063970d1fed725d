/** Typed requests to the HTTP API. */

import { emit } from "../state/events";
import type { ApiError, NewMode, Routes, Task } from "./types";

export type ModeName = NewMode["mode"];
export type TaskState = Task["state"];
export type RouteName = keyof Routes;

/** A request that failed. `code` is a code of the API, or OFFLINE if no server answered. */
export class RequestFailure extends Error {
  override readonly name = "RequestFailure";

  constructor(readonly status: number, readonly code: string, message: string, readonly details: unknown = null) {
    super(message);
  }
}

type Query<R extends RouteName> = Partial<Record<Routes[R]["query"], string | number | undefined>>;
type Names<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

export interface RouteOptions<R extends RouteName> {
  params?: Record<Names<R>, string | number>;
  query?: Query<R>;
  body?: Routes[R]["body"];
  signal?: AbortSignal | undefined;
}

/** Call a route: `request("GET /api/tasks/{task}", { params: { task } })`. */
export async function request<R extends RouteName>(route: R, options: RouteOptions<R> = {}): Promise<Routes[R]["answer"]> {
  const response = await send(route, options);
  const answer: unknown = response.status === 204 ? undefined : await response.json();
  return answer as Routes[R]["answer"];
}

/** Call a route whose answer is plain text. */
export async function requestText<R extends RouteName>(route: R, options: RouteOptions<R> = {}): Promise<string> {
  return (await send(route, options)).text();
}

/** The address of a route, for links to raw output. */
export function addressOf<R extends RouteName>(route: R, options: Pick<RouteOptions<R>, "params" | "query"> = {}): string {
  const path = route.slice(route.indexOf(" ") + 1);
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const params: Record<string, string | number> = options.params ?? {};
    return encodeURIComponent(String(params[name] ?? ""));
  });
  const query = new URLSearchParams();
  const wanted: Record<string, string | number | undefined> = options.query ?? {};
  for (const [name, value] of Object.entries(wanted)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  return query.size > 0 ? `${filled}?${query.toString()}` : filled;
}

export async function login(token: string): Promise<void> {
  await fetchOrFail("/api/login", { method: "POST", headers: JSON_HEADERS, body: JSON.stringify({ token }) });
}

export async function logout(): Promise<void> {
  await fetchOrFail("/api/logout", { method: "POST" });
}

const JSON_HEADERS = { "Content-Type": "application/json" };

function send<R extends RouteName>(route: R, options: RouteOptions<R>): Promise<Response> {
  const method = route.slice(0, route.indexOf(" "));
  const init: RequestInit = { method, signal: options.signal ?? null };
  if (options.body !== undefined) {
    init.headers = JSON_HEADERS;
    init.body = JSON.stringify(options.body);
  }
  return fetchOrFail(addressOf(route, options), init);
}

async function fetchOrFail(address: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(address, { ...init, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestFailure(0, "OFFLINE", "The server does not answer. Nothing was sent.");
  }
  if (response.ok) return response;
  const failure = await readFailure(response);
  if (response.status === 401) emit("handrail:unauthorized");
  throw failure;
}

async function readFailure(response: Response): Promise<RequestFailure> {
  try {
    const body = (await response.json()) as Partial<ApiError>;
    if (typeof body.code === "string" && typeof body.message === "string") {
      return new RequestFailure(response.status, body.code, body.message, body.details);
    }
  } catch {
    // Not JSON: a proxy or another server answered.
  }
  return new RequestFailure(response.status, "INTERNAL", `The server answered with status ${response.status}.`);
}

/** A failure as one sentence for people. */
export function describeFailure(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
