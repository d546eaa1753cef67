// As root.
import "./calls.user.ts";
