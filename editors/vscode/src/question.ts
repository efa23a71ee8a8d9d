/** The words of a question: who asks, what would happen, the answers, and where a lasting one is stored. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import type { PermissionOption, PermissionParams, PermissionResult } from "./protocol";
import { plural, visible, visibleLines, who } from "./text";

export interface Ask {
  params: PermissionParams;
  /** Goes along with the answer. */
  comment?: string;
  /** The person's, instead of the agent's. */
  input?: Record<string, unknown>;
}

/** One numbered answer. */
export interface Choice {
  option: PermissionOption;
  key: string;
  /** For a link. */
  short: string;
  label: string;
  /** It is stored in a file, which is chosen next: what is. */
  lasting?: string;
}

export interface Place {
  destination: NonNullable<PermissionResult["destination"]>;
  key: string;
  path: string;
  whom: string;
}

type Kind = PermissionOption["kind"];
const SHORT: Record<Kind, string> = {
  allowOnce: "Allow once",
  allowSession: "Allow for session",
  allowAlways: "Always allow…",
  rejectOnce: "Reject",
  rejectSession: "Reject for session",
  rejectAlways: "Always reject…",
  rejectAndStop: "Reject and stop",
};
const LASTING: Partial<Record<Kind, string>> = { allowAlways: "Always allow", rejectAlways: "Always reject" };
const FOR_GOOD: Partial<Record<Kind, Kind>> = { allowSession: "allowAlways", rejectSession: "rejectAlways" };
const WHOM: Record<string, string> = {
  localSettings: "you, in this folder",
  projectSettings: "everybody who works on this project",
  userSettings: "you, in every folder",
};
const OUTCOMES: Record<string, string> = {
  allowOnce: "allowed once",
  allowSession: "allowed for the session",
  allowAlways: "always allowed",
  rejectOnce: "rejected",
  rejectSession: "rejected for the session",
  rejectAlways: "always rejected",
  rejectAndStop: "rejected, and the agent stopped",
};
const LISTED = 2;
export const ANSWERS = "Your answer:";
export const FILES = "Store it in which file?";
export const CHANGE = "Change:";

/** What somebody else decided: "rejected". Undefined when nobody chose. */
export function outcomeWords(kind: unknown): string | undefined {
  return typeof kind === "string" ? OUTCOMES[kind] : undefined;
}

export function named({ params }: Ask): string {
  return `${visible(params.title)}, asked by ${who(params.agent)}`;
}

export function places({ destinations, destinationFiles }: PermissionParams): Place[] {
  const found: Place[] = [];
  for (const destination of destinations ?? []) {
    const file = destinationFiles?.find((each) => each.destination === destination);
    const whom = WHOM[destination];
    if (file && whom) {
      found.push({ destination, key: String(found.length + 1), path: shownPath(file.path), whom });
    }
  }
  return found;
}

function shownPath(path: string): string {
  const home = `${homedir()}/`;
  const relative = vscode.workspace.asRelativePath(path, false);
  return visible(relative !== path ? relative : path.startsWith(home) ? `~/${path.slice(home.length)}` : path);
}

/**
 * The numbered answers; options of a kind that we don't know are none. Where the server offers none for good but has
 * files, the answer for the session can be stored.
 */
export function choices(params: PermissionParams): Choice[] {
  const kinds = new Set(params.options.map(({ kind }) => kind));
  const stored = places(params).length > 0;
  const found: Choice[] = [];
  const add = (option: PermissionOption, kind: Kind): void => {
    const words = LASTING[kind];
    const key = String(found.length + 1);
    if (words !== undefined && option.rule !== undefined && stored) {
      const rule = visible(option.rule);
      const label = `${words}, in a file that you choose: ${rule}`;
      found.push({ option, key, short: SHORT[kind], label, lasting: `${words}: ${rule}` });
    } else {
      found.push({ option, key, short: SHORT[kind].replace("…", ""), label: visible(option.label) });
    }
  };
  for (const option of params.options.filter(({ kind }) => kind in SHORT)) {
    add(option, option.kind);
    const always = FOR_GOOD[option.kind];
    if (always && !kinds.has(always) && stored && option.rule !== undefined) {
      add(option, always);
    }
  }
  return found;
}

/** A rule names the agent's input: with one that the person changed nothing is stored. */
export function offered(ask: Ask): Choice[] {
  return choices(ask.params).filter(({ option }) => ask.input === undefined || option.rule === undefined);
}

export function canReason(params: PermissionParams): boolean {
  return params.options.some(({ kind }) => kind === "rejectOnce");
}

/** Keys besides the numbers, with what they do. */
export function otherKeys(ask: Ask, several: boolean): [key: string, label: string][] {
  return [
    ...(canReason(ask.params) ? [["r", "Reject and say why"] as [string, string]] : []),
    ["c", ask.comment ? "Change the comment" : "Add a comment"],
    ["e", "Edit the input"],
    ...(ask.input ? [["u", "Undo the edit"] as [string, string]] : []),
    ...(several ? ([["n", "Next question"], ["p", "Previous question"]] as [string, string][]) : []),
  ];
}

/** All that is needed to decide. The answers stand below the command, and above a change, which may be long. */
export function questionText(ask: Ask, queue: readonly Ask[], choice: Choice | undefined): string {
  const { agent, reason, title } = ask.params;
  const lines = [headLine(ask, queue), "", who(agent)];
  lines.push(...agent.chain.map((link) => `  for ${who(link)}`), `asks: ${visible(title)}`);
  if (reason) {
    lines.push(visible(reason, "\n"));
  }
  lines.push("");
  if (ask.input) {
    lines.push("Your input, which runs instead:", ...indented(pretty(ask.input)), "", "Before your change:");
  }
  lines.push(...commandLines(ask.params), ...(choice ? fileLines(ask, choice) : answerLines(ask, queue.length > 1)));
  lines.push("", ...changeLines(ask.params));
  return `${lines.join("\n").trimEnd()}\n`;
}

/** Always one line: what is below must not move when a question comes or goes. */
function headLine(ask: Ask, queue: readonly Ask[]): string {
  const others = queue.filter((each) => each !== ask).map(({ params }) => who(params.agent));
  const head = `Question ${queue.indexOf(ask) + 1} of ${queue.length}`;
  if (others.length === 0) {
    return head;
  }
  const rest = others.length > LISTED ? ` and ${others.length - LISTED} more` : "";
  return `${head}. Also waiting: ${others.slice(0, LISTED).join(", ")}${rest}`;
}

function commandLines({ detail }: PermissionParams): string[] {
  const lines: string[] = [];
  if (detail?.command !== undefined) {
    lines.push("Command:", ...indented(detail.command), `Directory: ${visible(detail.cwd ?? "unknown")}`, "");
  }
  for (const [name, value] of [["Address", detail?.url], ["Server", detail?.server]] as const) {
    if (value !== undefined) {
      lines.push(`${name}: ${visible(value)}`, "");
    }
  }
  return lines;
}

function answerLines(ask: Ask, several: boolean): string[] {
  const comment = ask.comment ? [`Your comment goes along: ${visible(ask.comment)}`, ""] : [];
  const keys = otherKeys(ask, several).map(([key, label]) => `  ${key}  ${label}`);
  return [...comment, ANSWERS, ...offered(ask).map(({ key, label }) => `  ${key}  ${label}`), ...keys];
}

function fileLines(ask: Ask, choice: Choice): string[] {
  const found = places(ask.params);
  const widest = Math.max(...found.map(({ path }) => path.length));
  const rows = found.map(({ key, path, whom }) => `  ${key}  ${path.padEnd(widest)}   ${whom}`);
  return [choice.lasting ?? "", "", FILES, ...rows, "  b  Back"];
}

function changeLines({ detail, tool, input }: PermissionParams): string[] {
  if (detail?.diff) {
    return [CHANGE, ...visibleLines(detail.diff).trimEnd().split("\n")];
  }
  if (detail?.command !== undefined || detail?.url !== undefined) {
    return [];
  }
  const lines: string[] = [];
  if (tool.kind === "edit") {
    const text = textOf(input["content"]) ?? textOf(input["new_string"]) ?? "";
    const path = visible(textOf(input["file_path"]) ?? "the file");
    lines.push(`No diff can be shown of ${path}: ${plural(text.split("\n").length, "line")}.`);
  }
  return [...lines, "Input:", ...visibleLines(pretty(input)).split("\n")];
}

function indented(text: string): string[] {
  return visible(text, "\n").split("\n").map((line) => `  ${line}`);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** JSON that means the same, with characters that a view would hide written out. */
export function pretty(value: Record<string, unknown>): string {
  const units = (char: string): string =>
    char.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
  return JSON.stringify(value, null, 2).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) => (char === "\n" ? char : units(char)));
}
