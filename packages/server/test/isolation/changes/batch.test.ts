import { Errno } from "@agentfense/fuse";
import { expect, test } from "vitest";
import { Batch, type Keep } from "../../../src/isolation/changes/batch.ts";

/** What happens, in its order. */
function recorder(keep: Keep = () => new Map()) {
  const events: string[] = [];
  const batch = new Batch((fds) => {
    if (fds.length > 0) events.push(`keep ${fds.join(" ")}`);
    return keep(fds);
  });
  const add = (fd: number, { size = 1, errno = 0 } = {}): void =>
    batch.add(
      {
        fd,
        size,
        place: () => {
          events.push(`place ${fd}`);
          return errno;
        },
        [Symbol.dispose]: () => void events.push(`close ${fd}`),
      },
      (code) => events.push(`${fd} is ${code}`),
    );
  const end = (directory: number): void =>
    batch.end({
      directory,
      held: { [Symbol.dispose]: () => void events.push(`close ${directory}`) },
      run: (code) => events.push(`end ${directory} ${code}`),
    });
  return { batch, events, add, end };
}

test("files are named when they are on the disk, and directories end when the names are", () => {
  const { batch, events, add, end } = recorder();
  add(1);
  end(10);
  add(2);
  end(11);
  expect(events).toEqual([]);
  batch.flush();
  expect(events).toEqual([
    "keep 1 2",
    ...["place 1", "1 is 0", "close 1", "place 2", "2 is 0", "close 2"],
    "keep 10 11",
    ...["end 10 0", "close 10", "end 11 0", "close 11"],
  ]);
  batch.flush();
  expect(events).toHaveLength(12);
});

test("a file that did not get to the disk gets no name, and the others do", () => {
  const { batch, events, add } = recorder(() => new Map([[1, Errno.EIO]]));
  add(1);
  add(2, { errno: Errno.ENOSPC });
  batch.flush();
  expect(events).toEqual(["keep 1 2", `1 is ${Errno.EIO}`, "close 1", "place 2", `2 is ${Errno.ENOSPC}`, "close 2"]);
});

test("no more waits than descriptors and an interruption allow", () => {
  const { events, add } = recorder();
  for (let fd = 0; fd < 1000; fd += 1) add(fd);
  expect(events.filter((event) => event.startsWith("keep")).length).toBeGreaterThan(3);
  expect(events.filter((event) => event.startsWith("place")).length).toBeGreaterThan(700);
  const large = recorder();
  large.add(1, { size: 2 ** 40 });
  expect(large.events).toContain("place 1");
});

test("what still waits when it is disposed of never was", () => {
  const { batch, events, add, end } = recorder();
  add(1);
  end(10);
  batch[Symbol.dispose]();
  expect(events).toEqual(["close 1", "close 10"]);
});

test("without a disk nothing waits", () => {
  const placed: number[] = [];
  new Batch(undefined).add({ fd: 1, size: 0, place: () => 0, [Symbol.dispose]() {} }, (errno) => placed.push(errno));
  expect(placed).toEqual([0]);
});
