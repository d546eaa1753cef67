import { JobThread } from "../../../src/isolation/jobs/thread.ts";

/** The same threads for all tests of this process, with which they end. */
export const jobsOfProcess = new JobThread({ threads: 2, holdsProcess: false });
