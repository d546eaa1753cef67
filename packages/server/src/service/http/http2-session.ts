import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { ServiceLimits } from "./limits.ts";

/** Bytes of all streams of a connection that may be on their way before we read them. */
const CONNECTION_WINDOW = 4 * 1024 * 1024;
const PING_TIMEOUT_MS = 20_000;

/** Ends a connection that has no call for a while, or whose peer does not answer any more. */
export function tendSession(session: ServerHttp2Session, limits: ServiceLimits): void {
  let streams = 0;
  // Not the session's own timeout: that goes on when the session has ended, and keeps it in memory until it is over.
  const idle = setTimeout(() => {
    if (streams === 0) session.close();
    else demandAnswer(session);
    idle.refresh();
  }, limits.idleTimeoutMs).unref();
  session.on("stream", (stream: ServerHttp2Stream) => {
    streams += 1;
    idle.refresh();
    stream.once("close", () => {
      streams -= 1;
      if (!session.destroyed) idle.refresh();
    });
  });
  session.once("connect", () => session.setLocalWindowSize(CONNECTION_WINDOW));
  session.on("error", () => session.destroy());
  session.once("close", () => clearTimeout(idle));
}

/** A quiet stream is fine (an event watch), a dead peer is not. */
function demandAnswer(session: ServerHttp2Session): void {
  if (session.closed || session.destroyed) return;
  const silence = setTimeout(() => session.destroy(), PING_TIMEOUT_MS);
  silence.unref();
  const sent = session.ping(() => clearTimeout(silence));
  if (!sent) clearTimeout(silence);
  session.once("close", () => clearTimeout(silence));
}
