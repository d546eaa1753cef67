import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { promisify } from "node:util";
import { aWhile, eventually } from "../../../../../test/support/eventually.ts";
import { openBoxFixture, shell } from "./fixture.ts";
import { codeOf, type Scenario } from "./scenarios.ts";

const quick = { env: {}, workdir: "/workspace", stdin: false } as const;

/** What lasts from one command to the next, and what ends with it. */
export const LIVING_SCENARIOS: Readonly<Record<string, Scenario>> = {
  "files in /tmp and /dev/shm, and background processes, are there for the next command": {
    run: async (place) => {
      const begun = "until pgrep -fx 'sleep 981'; do :; done"; // a fork becomes its program when it comes to it
      await place.sh(`for d in /tmp /dev/shm; do echo kept > $d/kept; done; sleep 981 & ${begun}`);
      const next = await place.sh("cat /tmp/kept /dev/shm/kept; pgrep -fxc 'sleep 981'");
      await place.sh("rm /tmp/kept /dev/shm/kept; pkill -fx 'sleep 981'");
      return next.stdout;
    },
    expected: "kept\nkept\n1\n",
  },
  "a server that one command starts answers the next on the loopback device": {
    run: async (place) => {
      const program = `import http.server, sys\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_GET(self):\n    self.send_response(200); self.end_headers(); self.wfile.write(b'hello\\n')\nhttp.server.HTTPServer(('127.0.0.1', 4711), H).serve_forever()`;
      await place.sh("cat > /tmp/serve.py; python3 /tmp/serve.py & disown", { input: program });
      const ask =
        "import time, urllib.request\nwhile True:\n  try:\n    print(urllib.request.urlopen('http://127.0.0.1:4711').read().decode(), end=''); break\n  except OSError: time.sleep(0.01)";
      const answer = await place.sh("python3 -", { input: ask });
      await place.sh("pkill -f serve.py; rm /tmp/serve.py");
      return answer.stdout;
    },
    expected: "hello\n",
  },
  "killing a command ends its daemons, and not those of the command before": {
    run: async (place) => {
      await place.sh("setsid sleep 971 & (setsid sleep 972 &); until [ $(pgrep -fxc 'sleep 97[12]') = 2 ]; do :; done");
      const line =
        "(setsid bash -c 'sleep 973 & sleep 974' &); env -i setsid sleep 975 & while :; do sleep 0.01 & done";
      const victim = await place.box.run({ ...quick, argv: ["/bin/bash", "-c", line] });
      const others = "pgrep -fx 'sleep 97[345]' | wc -l";
      while (Number((await place.sh(others)).stdout) < 3) await aWhile(5);
      victim.kill();
      const { exitCode } = await victim.exit;
      const left = await place.sh(`${others}; pgrep -fx 'sleep 97[12]' | wc -l; pkill -fx 'sleep 97[12]'`);
      return [exitCode, left.stdout];
    },
    expected: [137, "0\n2\n"],
  },
  "a command that kills its waiter ends, with all it started": {
    run: async (place) => {
      const ended = await place.sh("setsid sleep 961 & kill -9 $PPID; sleep 962");
      return [ended.exitCode, (await place.sh("pgrep -fxc 'sleep 96[12]'")).stdout];
    },
    expected: [137, "0\n"],
  },
  "a command that kills all it can ends all commands of the box, and the next one runs": {
    run: async (place) => {
      const other = place.sh("sleep 951");
      const killer = await place.sh(
        "while ! pgrep -fx 'sleep 951' > /tmp/x; do :; done; rm /tmp/x; kill -9 -1; sleep 952",
      );
      return [killer.exitCode, (await other).exitCode, (await place.sh("echo next")).stdout];
    },
    expected: [137, 137, "next\n"],
  },
  "a waiter that is stopped holds nobody up who kills its command": {
    run: async (place) => {
      const running = await place.box.run({ ...quick, argv: ["/bin/bash", "-c", "kill -STOP $PPID; sleep 941"] });
      while ((await place.sh("pgrep -fx 'sleep 941'")).exitCode !== 0) await aWhile(5);
      running.kill();
      return [(await running.exit).exitCode, (await place.sh("pgrep -fxc 'sleep 941'")).stdout];
    },
    expected: [137, "0\n"],
  },
  "process 1 can be neither killed nor stopped nor looked into, and its limits are its own": {
    run: async (place) => {
      const tries = [
        "for s in KILL STOP TERM INT HUP SEGV; do kill -$s 1; done",
        "ls /proc/1/fd; cat /proc/1/environ; cat /proc/1/mem; readlink /proc/1/cwd /proc/1/exe /proc/1/root; cat /proc/1/maps",
        "ls /proc/$PPID/fd; cat /proc/$PPID/mem; gdb -batch -p 1; gdb -batch -p $PPID",
        "prlimit --pid 1 --nofile=10:10 && echo lowered",
      ];
      const { stdout } = await place.sh(`(${tries.join("; ")}) 2>/dev/null`);
      return [stdout.replaceAll(/^.*(gdb|debug|warning|ptrace|No ).*\n/gim, ""), (await place.sh("echo alive")).stdout];
    },
    expected: ["", "alive\n"],
  },
  "a box whose process 1 dies is made anew for the next command, and what ran in it is told": {
    run: async (place) => {
      const box = await place.anotherBox();
      await shell(box, "touch /tmp/old");
      const running = await box.run({ ...quick, argv: ["/bin/sleep", "1000"] });
      process.kill(box.initPid ?? 0, "SIGKILL");
      const told = await codeOf(running.exit);
      const next = await shell(box, "ls -A /tmp; echo next");
      await box.destroy();
      return [told, next.stdout];
    },
    expected: ["INTERNAL", "next\n"],
  },
  "a background process goes on printing when its command has ended": {
    run: async (place) => {
      const first = await place.sh("(while [ ! -e /tmp/stop ]; do seq 1000; done; touch /tmp/done) & echo said");
      await place.sh("touch /tmp/stop; while [ ! -e /tmp/done ]; do sleep 0.01; done; rm /tmp/stop /tmp/done");
      return first.stdout.startsWith("said\n") || first.stdout.includes("\nsaid\n");
    },
    expected: true,
  },
  "all that a command printed arrives, also when its background holds the pipe": {
    run: async (place) => {
      const { stdout, stderr } = await place.sh("sleep 931 & head -c 3000000 /dev/zero; echo error >&2");
      await place.sh("pkill -fx 'sleep 931'");
      return [stdout.length, stderr];
    },
    expected: [3_000_000, "error\n"],
  },
  "five hundred processes at once all end, with their own exit codes": {
    run: async (place) => {
      const codes = await Promise.all(Array.from({ length: 500 }, (_, i) => place.sh(`exit ${i % 250}`)));
      return codes.every(({ exitCode }, i) => exitCode === i % 250);
    },
    expected: true,
  },
  "commands that leave processes behind are refused when there are too many of them, until they are gone": {
    run: async (place) => {
      const box = await place.anotherBox();
      await Promise.all(Array.from({ length: 64 }, () => shell(box, "sleep 921 &")));
      await eventually(async () => (await codeOf(shell(box, "true"))) === "RESOURCES_EXHAUSTED");
      const neighbour = await place.sh("echo runs");
      await box.destroy();
      const next = await place.anotherBox();
      const again = await shell(next, "echo again");
      await next.destroy();
      return [neighbour.stdout, again.stdout];
    },
    expected: ["runs\n", "again\n"],
  },
  "variables act on the command they were given with alone; those of the box on all": {
    run: async (place) => {
      await shell(place.box, "echo 'echo greeting from $0' > greeting");
      const env = { BASH_ENV: "/workspace/greeting", LD_PRELOAD: "/no/such.so" };
      const once = await shell(place.box, "echo $LD_PRELOAD", { env });
      const next = await shell(place.box, "echo $LD_PRELOAD");
      const box = await place.anotherBox({ env });
      const always = await shell(box, "echo $LD_PRELOAD");
      await box.destroy();
      await shell(place.box, "rm greeting");
      const complaints = (text: string): number => text.split("\n").filter((line) => line.startsWith("ERROR:")).length;
      return [once, next, always].map(({ stdout, stderr }) => [stdout, complaints(stderr)]);
    },
    expected: [
      ["greeting from /bin/bash\n/no/such.so\n", 1],
      ["\n", 0],
      ["greeting from /bin/bash\n/no/such.so\n", 1],
    ],
  },
};

/** Those that need a process in which nothing else opens or closes a descriptor. */
export const LONE_SCENARIOS: Readonly<Record<string, { run: () => Promise<unknown>; expected: unknown }>> = {
  "boxes leave no descriptor open, also when they are destroyed while a command starts": {
    run: async () => {
      await promisify(execFile)("/bin/true"); // with its first stream a process opens a descriptor that it keeps
      const before = descriptors();
      await useBoxes();
      await eventually(() => descriptors() === before);
      return "as many";
    },
    expected: "as many",
  },
};

async function useBoxes(): Promise<void> {
  await using place = await openBoxFixture();
  await place.sh("sleep 100 & seq 100000");
  await codeOf(place.sh("", { argv: ["/no/such"] }));
  for (let delay = 0; delay < 12; delay++) {
    const box = await place.anotherBox();
    if (delay % 2 === 1) void shell(box, "sleep 100").catch(() => {});
    await aWhile(delay);
    await box.destroy();
  }
}

function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}
