export {
  type MockAnswer,
  type MockCommand,
  MockEngine,
  type MockFileMap,
  type MockFiles,
  type MockMatcher,
  type MockResponse,
} from "@agentfense/sdk/testing";
