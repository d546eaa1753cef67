export type { MockAnswer, MockCommand, MockFiles, MockMatcher, MockResponse } from "./mock-command.ts";
export { MockEngine, type MockFileMap } from "./mock-engine.ts";
