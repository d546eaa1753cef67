import { browserClick } from "./browser-click.ts";
import { browserDownload } from "./browser-download.ts";
import { browserEvaluate } from "./browser-evaluate.ts";
import { browserFill } from "./browser-fill.ts";
import { browserNavigate } from "./browser-navigate.ts";
import { browserPress } from "./browser-press.ts";
import { browserScreenshot } from "./browser-screenshot.ts";
import { browserScroll } from "./browser-scroll.ts";
import { browserTabs } from "./browser-tabs.ts";
import { browserText } from "./browser-text.ts";
import { browserWait } from "./browser-wait.ts";
import { editFile } from "./edit-file.ts";
import { listFiles } from "./list-files.ts";
import { readFile } from "./read-file.ts";
import { runCode } from "./run-code.ts";
import { search } from "./search.ts";
import { shell } from "./shell.ts";
import type { Tool } from "./tool.ts";
import { writeFile } from "./write-file.ts";

/** Every tool there is. */
export const TOOLS: readonly Tool[] = [
  runCode,
  shell,
  readFile,
  writeFile,
  editFile,
  listFiles,
  search,
  browserNavigate,
  browserClick,
  browserFill,
  browserPress,
  browserScroll,
  browserText,
  browserScreenshot,
  browserEvaluate,
  browserWait,
  browserTabs,
  browserDownload,
];
