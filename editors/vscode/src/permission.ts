/**
 * Questions of agents: a queue, and the document in which one is read and answered. A question opens nothing by itself: it
 * shows in the tree, as a badge and in the status bar.
 *
 * The document has no default answer, and for a moment after something else was drawn, or the window got the focus,
 * nothing counts as one. A comment and a changed input are kept with the question and go along with the answer; to write
 * one never answers. A lasting answer takes a second step, in which the file is chosen.
 */

import * as vscode from "vscode";
import type { Connection } from "./client";
import { proposals, type Proposal } from "./edits";
import { Inputs } from "./input";
import type { PermissionOption, PermissionParams, PermissionResult } from "./protocol";
import { ANSWERS, type Ask, canReason, CHANGE, type Choice, FILES, named, offered, otherKeys, outcomeWords, places, pretty, questionText } from "./question";
import { message, visible, who } from "./text";

export type { Ask } from "./question";

interface Open extends Ask {
  /** Ends the server's own request; the answer goes by `agent/answer`, which tells what came of it. */
  reply: ((result: PermissionResult) => void) | undefined;
  sending?: boolean;
}

interface More {
  comment?: string;
  destination?: PermissionResult["destination"];
}

const GUARD_MS = 500;
const TOLD_MS = 8000;
/** A list cuts longer lines off, and a rule that is not read whole is not to be chosen. */
const PICK_WIDTH = 75;
const OPEN = "open";
const URI = vscode.Uri.from({ scheme: "agent-question", path: "/Agent asks" });
const PROPOSED = "agent-proposed";
const NOTHING = "No question is open.\n";
const CLOSED = "the question is not open any more";

export class Asks implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider, vscode.Disposable {
  private queue: Open[] = [];
  private current: Open | undefined;
  /** A lasting answer to the current question whose file is being chosen. */
  private choice: Choice | undefined;
  /** What is drawn, since when it may be answered, and whether it has had its links. */
  private drawn: { step: string; at: number; linked: boolean } | undefined;
  /** A comment or a reason is being written: what reaches the document is meant for that. */
  private writing = false;
  /** Withdrawn before it was told why. */
  private readonly withdrawn = new Map<string, { ask: Open; shown: boolean }>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly text = new vscode.EventEmitter<vscode.Uri>();
  private readonly lenses = new vscode.EventEmitter<void>();
  private picking: vscode.QuickPick<Item> | undefined;
  readonly onChanged = this.changed.event;
  readonly onDidChange = this.text.event;
  readonly onDidChangeCodeLenses = this.lenses.event;
  private readonly proposed = new Map<string, string>();
  private readonly inputs = new Inputs((requestId, value) => this.edited(requestId, value));
  private readonly parts: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly connection: Connection) {
    connection.answering = (params, token) => this.asked(params, token);
    this.parts = [
      vscode.workspace.registerTextDocumentContentProvider(URI.scheme, this),
      vscode.workspace.registerTextDocumentContentProvider(PROPOSED, {
        provideTextDocumentContent: (uri) => this.proposed.get(uri.toString()) ?? "",
      }),
      vscode.languages.registerCodeLensProvider({ scheme: URI.scheme }, this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.sawText(document)),
      vscode.workspace.onDidOpenTextDocument((document) => this.sawText(document)),
      vscode.window.onDidChangeVisibleTextEditors((editors) => {
        if (editors.some(({ document }) => document.uri.scheme === URI.scheme)) {
          this.showLinks();
        }
      }),
      // The click that brings the window to the front is no answer.
      vscode.window.onDidChangeWindowState(() => this.guard()),
      connection.onReady(() => void this.fetch().catch(() => undefined)),
      connection.onGone(() => this.lost()),
      connection.onProgress(({ agentId, event }) => {
        if (event["kind"] === "permissionResolved") {
          this.resolved(String(event["requestId"]), event["decidedBy"] === "user" ? outcomeWords(event["outcome"]) : undefined);
        } else if (event["kind"] === "ended") {
          this.queue.filter(({ params }) => params.agent.id === agentId).forEach((ask) => this.resolved(ask.params.requestId, undefined));
        }
      }),
      this.inputs,
      this.changed,
      this.text,
      this.lenses,
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.parts).dispose();
  }

  /** Those that no answer is on its way for. */
  all(): readonly Ask[] {
    return this.queue.filter(({ sending }) => !sending);
  }

  /** How many questions this agent has open. */
  of(agentId: string): number {
    return this.all().filter(({ params }) => params.agent.id === agentId).length;
  }

  // The queue

  private asked(params: PermissionParams, token: vscode.CancellationToken): Promise<PermissionResult> {
    return new Promise((resolve) => {
      this.add(params, resolve);
      token.onCancellationRequested(() => this.withdraw(params.requestId));
    });
  }

  private async fetch(): Promise<void> {
    const { requests } = await this.connection.request("permissions", {});
    for (const params of requests) {
      this.add(params, undefined);
    }
  }

  private find(requestId: string): Open | undefined {
    return this.queue.find(({ params }) => params.requestId === requestId);
  }

  private add(params: PermissionParams, reply: Open["reply"]): void {
    const known = this.find(params.requestId);
    if (known) {
      known.reply ??= reply;
      return;
    }
    this.queue.push({ params, reply });
    if (!this.current && documentIsOpen()) {
      this.turnTo(this.queue[0]);
    }
    this.redraw();
  }

  /** It was answered elsewhere, or nobody needs the answer any more: which of both is told later. */
  private withdraw(requestId: string): void {
    const ask = this.find(requestId);
    if (ask) {
      if (!ask.sending) {
        this.withdrawn.set(requestId, { ask, shown: this.isShown(ask) });
      }
      this.remove(ask);
    }
  }

  /** Why it is gone. What this window answered itself is not told. */
  private resolved(requestId: string, outcome: string | undefined): void {
    this.withdraw(requestId);
    const gone = this.withdrawn.get(requestId);
    this.withdrawn.delete(requestId);
    if (gone && outcome !== undefined) {
      const words = `Answered elsewhere, ${outcome}: ${named(gone.ask)}`;
      if (gone.shown) {
        void vscode.window.showInformationMessage(words);
      } else {
        vscode.window.setStatusBarMessage(words, TOLD_MS);
      }
    } else if (gone?.shown) {
      vscode.window.setStatusBarMessage(`Not asked any more: ${named(gone.ask)}`, TOLD_MS);
    }
  }

  private lost(): void {
    for (const ask of [...this.queue]) {
      this.remove(ask);
    }
    this.withdrawn.clear();
  }

  private isShown(ask: Open): boolean {
    return this.current === ask && documentIsOpen();
  }

  private turnTo(ask: Open | undefined, choice?: Choice): void {
    this.current = ask;
    this.choice = choice;
  }

  private remove(ask: Open): void {
    this.queue = this.queue.filter((each) => each !== ask);
    ask.reply?.({ cancelled: true }); // decides nothing
    if (this.current === ask) {
      this.turnTo(this.queue[0]);
      this.picking?.hide();
    }
    for (const uri of [...this.proposed.keys()].filter((each) => each.includes(ask.params.requestId))) {
      this.proposed.delete(uri);
    }
    void closeTabs((tab) => isDiffOf(tab, ask.params.requestId));
    void this.inputs.forget(ask.params.requestId);
    this.redraw();
  }

  private redraw(): void {
    this.text.fire(URI);
    this.lenses.fire();
    this.changed.fire();
  }

  // Answering

  private async answer(ask: Open, option: PermissionOption, more: More = {}): Promise<void> {
    const comment = more.comment ?? ask.comment;
    const destination = more.destination ?? option.destination;
    const { requestId } = ask.params;
    if (ask.sending) {
      return;
    }
    if (!this.queue.includes(ask)) {
      this.notSent(ask, CLOSED, comment);
      return;
    }
    ask.sending = true;
    this.changed.fire();
    try {
      const { accepted, reason } = await this.connection.request("answer", {
        requestId,
        optionId: option.id,
        ...(comment ? { comment } : {}),
        ...(destination ? { destination } : {}),
        ...(ask.input && option.kind === "allowOnce" ? { updatedInput: ask.input } : {}),
      });
      if (!accepted) {
        this.notSent(ask, reason ?? CLOSED, comment);
        return;
      }
    } catch (error) {
      this.notSent(ask, message(error), comment);
      return;
    }
    if (this.queue.includes(ask)) {
      this.remove(ask);
    }
    if (!this.current) {
      await closeTabs((tab) => tab.input instanceof vscode.TabInputText && tab.input.uri.scheme === URI.scheme);
    }
  }

  /** What was written is told again. */
  private notSent(ask: Open, reason: string, comment: string | undefined): void {
    ask.sending = false;
    this.guard();
    this.changed.fire();
    const words = comment ? ` Not sent: ${comment}` : "";
    void vscode.window.showWarningMessage(`Your answer was not taken: ${reason}.${words}`);
  }

  private async rejectWithReason(ask: Open): Promise<void> {
    const option = ask.params.options.find(({ kind }) => kind === "rejectOnce");
    if (!option) {
      return;
    }
    const prompt = `Rejects: ${visible(ask.params.title)}. The agent reads your reason.`;
    const reason = await this.line("Why not?", prompt, ask.comment);
    if (reason) {
      await this.answer(ask, option, { comment: reason });
    }
  }

  private async comment(ask: Open): Promise<void> {
    const typed = await this.line("Comment", "It is sent along with your answer, which you give next. The agent reads it.", ask.comment);
    if (typed === undefined) {
      return;
    }
    if (!this.queue.includes(ask)) {
      this.notSent(ask, CLOSED, typed);
      return;
    }
    delete ask.comment;
    if (typed) {
      ask.comment = typed;
    }
    this.redraw();
  }

  /** What is pressed as the box closes counts for nothing. */
  private async line(title: string, prompt: string, value: string | undefined): Promise<string | undefined> {
    this.writing = true;
    const typed = await vscode.window.showInputBox({ title, prompt, ignoreFocusOut: true, ...(value ? { value } : {}) });
    this.writing = false;
    this.guard();
    return typed?.trim();
  }

  private async edited(requestId: string, value: Record<string, unknown>): Promise<void> {
    const ask = this.find(requestId);
    if (!ask) {
      throw new Error(`${CLOSED}: it was answered elsewhere, or its agent has ended`);
    }
    ask.input = value;
    await this.inputs.forget(requestId);
    this.drawn = undefined;
    this.turnTo(ask);
    this.redraw();
    await this.open(requestId);
  }

  /** What a guard time belongs to. */
  private get step(): string {
    return `${this.current?.params.requestId ?? ""} ${this.choice?.key ?? ""}`;
  }

  /** Was what is drawn there long enough to be read? */
  private mayAnswer(step: string): boolean {
    return !this.writing && this.step === step && this.drawn?.step === step && Date.now() - this.drawn.at >= GUARD_MS;
  }

  private guard(): void {
    if (this.drawn) {
      this.drawn.at = Date.now();
    }
  }

  /** A key in the document. */
  async key(key: string): Promise<void> {
    const ask = this.current;
    if (ask && !ask.sending && this.mayAnswer(this.step)) {
      await this.choose(ask, key);
    }
  }

  /** A link in the document. It answers what it was drawn for, and nothing else. */
  async link(step: string, key: string): Promise<void> {
    if (step === this.step) {
      await this.key(key);
    }
  }

  private async choose(ask: Open, key: string): Promise<void> {
    if (this.choice && this.current === ask) {
      await this.chooseFile(ask, this.choice, key);
      return;
    }
    const choice = offered(ask).find((each) => each.key === key);
    if (choice?.lasting !== undefined) {
      this.turnTo(ask, choice);
      this.redraw();
      await this.open(ask.params.requestId, choice);
    } else if (choice) {
      await this.answer(ask, choice.option);
    } else if (key === "r") {
      await this.rejectWithReason(ask);
    } else if (key === "c") {
      await this.comment(ask);
    } else if (key === "e") {
      await this.inputs.open(ask.params.requestId, pretty(ask.input ?? ask.params.input));
    } else if (key === "u") {
      delete ask.input;
      await this.inputs.forget(ask.params.requestId);
      this.redraw();
    } else if (key === "n" || key === "p") {
      const index = this.queue.indexOf(ask) + (key === "n" ? 1 : -1);
      this.turnTo(this.queue.at(index % this.queue.length));
      this.redraw();
    }
  }

  private async chooseFile(ask: Open, choice: Choice, key: string): Promise<void> {
    const place = places(ask.params).find((each) => each.key === key);
    if (place) {
      await this.answer(ask, choice.option, { destination: place.destination });
    } else if (key === "b") {
      this.turnTo(ask);
      this.redraw();
    }
  }

  /** A list, for keyboards and for the diff, where the document is out of sight. "Decide later" comes first. */
  pick(): void {
    const ask = [this.current, ...this.queue].find((each) => each && !each.sending);
    if (!ask) {
      void vscode.window.showInformationMessage("No agent asks for anything.");
      return;
    }
    const picker = vscode.window.createQuickPick<Item>();
    picker.title = [who(ask.params.agent), ...ask.params.agent.chain.map((link) => `for ${who(link)}`)].join(", ");
    picker.placeholder = `asks: ${visible(ask.params.title)}`;
    picker.ignoreFocusOut = true;
    const whole = offered(ask);
    const fitting = whole.filter(({ label }) => label.length <= PICK_WIDTH);
    const later: Item = { label: "Decide later", key: undefined };
    picker.items = [later];
    // Answers appear when they count.
    const guard = setTimeout(() => {
      picker.items = [
        later,
        ...fitting.map(({ label, key }) => ({ label, key })),
        ...(canReason(ask.params) ? [{ label: "Reject and say why…", key: "r" }] : []),
        ...(fitting.length < whole.length ? [{ label: "All answers, with their whole rules…", key: OPEN }] : []),
      ];
    }, GUARD_MS);
    picker.onDidAccept(() => {
      const key = picker.selectedItems[0]?.key;
      picker.hide();
      if (key === OPEN) {
        void this.open(ask.params.requestId);
      } else if (key !== undefined) {
        void this.choose(ask, key);
      }
    });
    picker.onDidHide(() => {
      clearTimeout(guard);
      this.guard();
      this.picking = undefined;
      picker.dispose();
    });
    this.picking = picker;
    this.turnTo(ask);
    this.redraw();
    picker.show();
  }

  // The document

  /** Opens a question, the oldest one when none is named. */
  async open(requestId?: string, choice?: Choice): Promise<void> {
    const ask = (requestId === undefined ? undefined : this.find(requestId)) ?? this.queue.find(({ sending }) => !sending);
    if (!ask) {
      void vscode.window.showInformationMessage("No agent asks for anything.");
      return;
    }
    if (this.current !== ask || this.choice !== choice) {
      this.turnTo(ask, choice);
      this.drawn = undefined;
      this.redraw();
    }
    const document = await vscode.workspace.openTextDocument(URI);
    await vscode.window.showTextDocument(document, { preview: false });
    this.sawText(document);
  }

  private sawText(document: vscode.TextDocument): void {
    if (document.uri.toString() !== URI.toString()) {
      return;
    }
    if (!this.current || document.getText() !== this.provideTextDocumentContent()) {
      this.drawn = undefined;
    } else if (this.drawn?.step !== this.step) {
      this.drawn = { step: this.step, at: Date.now(), linked: false };
      this.showLinks();
    }
  }

  /** Links appear when they count. */
  private showLinks(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.drawn) {
        this.drawn.linked = true;
      }
      this.lenses.fire();
    }, GUARD_MS + 20);
  }

  provideTextDocumentContent(): string {
    return this.current ? questionText(this.current, this.queue, this.choice) : NOTHING;
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const { current: ask, step } = this;
    const lines = document.getText().split("\n");
    // Between two questions the text may still be the last one's.
    if (!ask || !this.drawn?.linked || this.drawn.step !== step || document.getText() !== this.provideTextDocumentContent()) {
      return [];
    }
    const lens = (line: number, title: string, command: string, ...args: unknown[]): vscode.CodeLens =>
      new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command, arguments: args });
    const link = (line: number, key: string, title: string): vscode.CodeLens => lens(line, `${key} ${title}`, "agentLs.link", step, key);
    const files = lines.indexOf(FILES);
    if (this.choice) {
      return [...places(ask.params).map(({ key, path }) => link(files, key, path)), link(files, "b", "Back")];
    }
    const answers = lines.indexOf(ANSWERS);
    const rows = offered(ask);
    const rejects = answers + 1 + rows.findIndex(({ option }) => option.kind.startsWith("reject"));
    const others = answers + 1 + rows.length + (canReason(ask.params) ? 1 : 0);
    const found = [
      ...rows.map(({ key, short, option }) => link(option.kind.startsWith("reject") ? rejects : answers, key, short)),
      ...otherKeys(ask, this.queue.length > 1).map(([key, label]) => link(key === "r" ? rejects : others, key, label)),
    ];
    const change = lines.indexOf(CHANGE);
    if (change >= 0 && ask.params.detail?.edit) {
      found.push(lens(change, "Show side by side", "agentLs.showProposed", ask.params.requestId));
    }
    return found;
  }

  /** The change in the native diff editor, against the text as it is now. */
  async showProposed(requestId: string): Promise<void> {
    const ask = this.find(requestId);
    if (!ask) {
      return;
    }
    for (const proposal of await proposals(ask.params.detail?.edit)) {
      await this.showDiff(ask, proposal);
    }
  }

  private async showDiff(ask: Open, { uri, before, after }: Proposal): Promise<void> {
    const name = uri.path.split("/").at(-1) ?? uri.path;
    const side = (query: string): vscode.Uri =>
      vscode.Uri.from({ scheme: PROPOSED, path: `/${ask.params.requestId}/${name}`, query });
    this.proposed.set(side("now").toString(), before);
    this.proposed.set(side("proposed").toString(), after);
    const title = `${name}: now ↔ asked for by ${visible(ask.params.agent.description || ask.params.agent.agentType)}`;
    await vscode.commands.executeCommand("vscode.diff", side("now"), side("proposed"), title, { preview: true });
  }
}

interface Item extends vscode.QuickPickItem {
  key: string | undefined;
}

function documentIsOpen(): boolean {
  return tabs().some(({ input }) => input instanceof vscode.TabInputText && input.uri.scheme === URI.scheme);
}

function tabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}

function isDiffOf({ input }: vscode.Tab, requestId: string): boolean {
  return (
    input instanceof vscode.TabInputTextDiff &&
    input.modified.scheme === PROPOSED &&
    input.modified.path.startsWith(`/${requestId}/`)
  );
}

async function closeTabs(fits: (tab: vscode.Tab) => boolean): Promise<void> {
  const found = tabs().filter(fits);
  if (found.length > 0) {
    await vscode.window.tabGroups.close(found, true);
  }
}
