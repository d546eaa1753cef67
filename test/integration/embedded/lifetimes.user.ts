// The same as an ordinary user: see as-user.test.ts.
import "./lifetimes.test.ts";
