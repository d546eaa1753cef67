import { testsAsUser } from "../../support/as-user.ts";

await testsAsUser("test/integration/layers/sandbox.user.ts");
