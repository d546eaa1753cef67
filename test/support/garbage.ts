import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** Frees what nothing refers to any more, so that a test counts what is held and not what has not been collected yet. */
export const collectGarbage = runInNewContext("gc") as () => void;
