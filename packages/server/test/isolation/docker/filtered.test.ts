import { once } from "node:events";
import { createServer } from "node:net";
import { syscalls } from "@agentfense/fuse";
import { expect, test, vi } from "vitest";
import type { Listen } from "../../../src/isolation/backend/backend.ts";
import { bash, describeDocker, finish } from "./arena.ts";

describeDocker("a container with a filtered network", (arena) => {
  /** Says at which address it was reached; how many are open is counted. */
  function answering() {
    const state = { lives: 0, open: 0 };
    const answerIn = async (listen: Listen) => {
      const [udp = -1, tcp = -1] = await listen([
        { protocol: "udp", address: "198.18.0.53", port: 53 },
        { protocol: "tcp", address: "0.0.0.0", port: 443 },
      ]);
      const server = createServer((socket) => void socket.on("error", () => {}).end(`${socket.localAddress}\n`));
      server.listen({ fd: tcp });
      await once(server, "listening");
      state.lives += 1;
      state.open += 1;
      let closing: Promise<void> | undefined;
      const close = async (): Promise<void> => {
        syscalls.close(udp);
        const closed = once(server, "close");
        server.close();
        await closed;
        state.open -= 1;
      };
      return {
        close: () => {
          closing ??= close();
          return closing;
        },
      };
    };
    return { state, answerIn };
  }

  test("reaches what listens there from outside and nothing else, and leaves no listener", async () => {
    const { state, answerIn } = answering();
    const box = await arena.box({ network: "filtered", answerIn });
    const lines = [
      "cat < /dev/tcp/198.19.3.4/443",
      "(exec 3<>/dev/tcp/198.18.0.9/80) 2>/dev/null || echo refused",
      "(exec 3<>/dev/tcp/1.1.1.1/443) 2>/dev/null || echo unreachable",
      "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '",
      "grep nameserver /etc/resolv.conf",
    ];
    const { stdout } = await finish(await bash(box, lines.join("\n")));
    expect(stdout).toBe("198.19.3.4\nrefused\nunreachable\nlo\nnameserver 198.18.0.53\n");
    expect(state).toEqual({ lives: 1, open: 1 });
    await box.destroy();
    expect(state).toEqual({ lives: 1, open: 0 });
  });

  test("is refused where nobody can enter its network", async () => {
    const backend = await arena.backend();
    const spec = await arena.spec({ network: "filtered", answerIn: answering().answerIn });
    const somebody = vi.spyOn(process, "geteuid").mockReturnValue(1000);
    await expect(backend.createBox(spec)).rejects.toMatchObject({
      code: "RUNTIME_UNAVAILABLE",
      message: "a container cannot have a filtered network: only a server of root can enter its network",
    });
    somebody.mockRestore();
  });
});
