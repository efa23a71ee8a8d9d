/** Texts as they are now and as they would be; nothing here changes anything. */

import * as vscode from "vscode";
import type { Range } from "./protocol";

export interface Proposal {
  uri: vscode.Uri;
  before: string;
  after: string;
}

interface TextEdit {
  range: Range;
  newText: string;
}

/** What a WorkspaceEdit as it came over the wire would do to each text. */
export async function proposals(edit: Record<string, unknown> | undefined): Promise<Proposal[]> {
  const found: Proposal[] = [];
  for (const [uri, edits] of byUri(edit ?? {})) {
    const parsed = vscode.Uri.parse(uri);
    const before = (await currentText(parsed)) ?? "";
    found.push({ uri: parsed, before, after: withEdits(before, edits) });
  }
  return found;
}

function byUri(edit: Record<string, unknown>): Map<string, TextEdit[]> {
  const found = new Map<string, TextEdit[]>();
  for (const [uri, edits] of Object.entries((edit["changes"] ?? {}) as Record<string, TextEdit[]>)) {
    found.set(uri, edits);
  }
  for (const change of (edit["documentChanges"] ?? []) as { textDocument?: { uri: string }; edits?: TextEdit[] }[]) {
    if (change.textDocument && change.edits) {
      found.set(change.textDocument.uri, [...(found.get(change.textDocument.uri) ?? []), ...change.edits]);
    }
  }
  return found;
}

/** The open text, else the file's; undefined when there is none. Opens nothing: an open document counts as the person's. */
export async function currentText(uri: vscode.Uri): Promise<string | undefined> {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  if (open) {
    return open.getText();
  }
  try {
    const bytes = await vscode.workspace.fs.readFile(uri);
    return new TextDecoder("utf-8", { ignoreBOM: false }).decode(bytes);
  } catch {
    return undefined;
  }
}

function withEdits(text: string, edits: TextEdit[]): string {
  const starts = lineStarts(text);
  const offset = ({ line, character }: Range["start"]): number => {
    const start = starts[line];
    return start === undefined ? text.length : Math.min(start + character, starts[line + 1] ?? text.length);
  };
  let result = text;
  const ordered = edits.map((edit) => ({ edit, at: offset(edit.range.start) })).sort((one, other) => other.at - one.at);
  for (const { edit, at } of ordered) {
    result = result.slice(0, at) + edit.newText + result.slice(offset(edit.range.end));
  }
  return result;
}

function lineStarts(text: string): number[] {
  const starts = [0];
  for (let index = text.indexOf("\n"); index >= 0; index = text.indexOf("\n", index + 1)) {
    starts.push(index + 1);
  }
  return starts;
}
