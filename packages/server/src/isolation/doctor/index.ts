export { examineHost } from "./examine.ts";
export { type Finding, type RealRuntime, workingRuntimes } from "./finding.ts";
