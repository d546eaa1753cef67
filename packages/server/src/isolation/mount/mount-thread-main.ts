import { setFlagsFromString } from "node:v8";

// V8 gathers what it needs to optimise a function only once the function has run for a while. A mount thread's work is known
// beforehand: gathering from the first call on halves the time that the first thousands of requests take.
setFlagsFromString("--no-lazy-feedback-allocation");

await import("./mount-thread-body.ts");
