import { renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs";
import { workerData } from "node:worker_threads";

// Swaps a directory for a link to another one and back, as fast as it can, until it is told to stop.

const { directory, outside, stop } = workerData as {
  readonly directory: string;
  readonly outside: string;
  readonly stop: Int32Array;
};

while (Atomics.load(stop, 0) === 0) {
  renameSync(directory, `${directory}-aside`);
  // A directory may have been made there meanwhile, by somebody who writes below it.
  succeeds(() => symlinkSync(outside, directory));
  succeeds(() => unlinkSync(directory));
  while (!succeeds(() => renameSync(`${directory}-aside`, directory))) {
    succeeds(() => rmSync(directory, { recursive: true, force: true }));
  }
}

function succeeds(step: () => void): boolean {
  try {
    step();
    return true;
  } catch {
    return false;
  }
}
