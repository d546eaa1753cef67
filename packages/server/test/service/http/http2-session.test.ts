import { once } from "node:events";
import { connect, createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { collectGarbage } from "../../../../../test/support/garbage.ts";
import { tendSession } from "../../../src/service/http/connections.ts";
import { DEFAULT_LIMITS } from "../../../src/service/http/limits.ts";

test("a connection that ended is forgotten at once, not when it would have been idle for long enough", async () => {
  const sessions: WeakRef<ServerHttp2Session>[] = [];
  const server = createServer((_request, response) => response.end("answer"));
  onTestFinished(() => void server.close());
  server.on("session", (session) => {
    sessions.push(new WeakRef(session));
    tendSession(session, { ...DEFAULT_LIMITS, idleTimeoutMs: 3_600_000 });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  for (let i = 0; i < 20; i += 1) await visit((server.address() as AddressInfo).port);
  // The one that came last may still be on the stack of something.
  const left = async (): Promise<number> => {
    await setImmediate();
    collectGarbage();
    return sessions.filter((session) => session.deref() !== undefined).length;
  };
  await eventually(async () => expect(await left()).toBeLessThanOrEqual(1));
});

async function visit(port: number): Promise<void> {
  const client = connect(`http://127.0.0.1:${port}`);
  const request = client.request();
  request.resume();
  await once(request, "end");
  const closed = once(client, "close");
  client.close();
  await closed;
}
