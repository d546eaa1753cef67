import { rmSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CANARY } from "../codebase.ts";
import { expectOnly } from "../outcomes.ts";
import { describeBoxes } from "./boxes.ts";
import { expectNowhere, flat } from "./facts.ts";

/** By name and number: a harmless name over a harmful number would be no better. */
const DEVICES = [
  /^\/dev\/null c 1:3$/,
  /^\/dev\/zero c 1:5$/,
  /^\/dev\/full c 1:7$/,
  /^\/dev\/random c 1:8$/,
  /^\/dev\/urandom c 1:9$/,
  /^\/dev\/tty c 5:0$/,
  /^\/dev\/(pts\/)?ptmx c 5:2$/,
  /^\/dev\/pts\/\d+ c 136:\d+$/,
];

interface TerminalFacts {
  readonly typing: Record<string, Record<string, string>>;
  readonly controlling: string;
  readonly terminal: string | null;
}

describeBoxes("ESC: devices, terminals and secrets of the host", (box) => {
  test("ESC-39 /dev has the harmless devices and nothing else", async () => {
    const facts = await box.attempt<{
      nodes: Record<string, string>;
      wanted: Record<string, string>;
      elsewhere: string[];
    }>("ESC-39");
    const nodes = Object.entries(facts.nodes).map(([path, number]) => `${path} ${number}`);
    expect(nodes.filter((node) => !DEVICES.some((known) => known.test(node)))).toEqual([]);
    expectOnly(facts.wanted, "ENOENT");
    expect(facts.elsewhere).toEqual([]);
  });

  test("ESC-40 no control socket of the host can be reached", async () => {
    const socket = box.kind.runtime === "docker" ? [box.engine.socketPath] : [];
    const facts = await box.attempt<{ connected: Record<string, string>; sockets: string[] }>("ESC-40", {
      paths: socket,
    });
    expectOnly(facts.connected, "ENOENT", "EACCES");
    expect(facts.sockets).toEqual([]);
  });

  test("ESC-45 nothing can be typed into a terminal, and the session is the sandbox's own", async () => {
    const alone = await box.attempt<TerminalFacts>("ESC-45");
    expectOnly(flat(alone.typing), "EPERM");
    expect(["ENXIO", "ENOENT", "EACCES"]).toContain(alone.controlling);
    const onTerminal = (await box.sandbox.onTerminal("ESC-45")) as TerminalFacts;
    expectOnly(flat(onTerminal.typing), "EPERM");
    expect(Object.keys(onTerminal.typing)).toContain("standard input");
    expect(onTerminal.terminal).toMatch(/^\/dev\/(pts\/\d+|console)$/);
  });

  test("ESC-47 secrets of the host's /etc, /root, /run and /var are not there", async () => {
    const name = `agentfense-secret-${box.sandbox.id}`;
    const paths = ["/etc", "/root", "/run", "/var/tmp", "/var/lib", "/home", "/srv"].map((place) => `${place}/${name}`);
    try {
      for (const path of paths) writeFileSync(path, CANARY.outside, { mode: 0o644 });
      const facts = await box.attempt<Record<string, Record<string, string>>>("ESC-47", { paths });
      expectOnly(facts.planted!, "<ENOENT>", "<EACCES>");
      expectNowhere(facts.listings, [name]);
      expectOnly(facts.secrets!, "<ENOENT>", "<EACCES>", "");
      expect(facts.passwd).not.toContain("agentfense-test");
    } finally {
      for (const path of paths) rmSync(path, { force: true });
    }
  });

  test("ESC-49 /proc tells neither where the host keeps the sandbox nor which one it is", async () => {
    const facts = await box.attempt<Record<string, Record<string, string>>>("ESC-49");
    expectNowhere(facts, [...box.host.ownPaths, box.host.state, box.sandbox.delta]);
    for (const groups of Object.values(facts.cgroup!))
      expect(groups.replaceAll(/^\d+:[^:]*:\/$/gm, "").trim()).toBe("");
    // An engine binds its own files for names and addresses, and its root file system is an overlay of its own store;
    // only the names of its directories show there, never one of ours.
    if (box.kind.runtime !== "docker") expectNowhere(facts, [box.sandbox.id]);
  });
});
