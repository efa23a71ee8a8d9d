/**
 * The connection to the server: one for the whole window, started by the first thing that needs it.
 *
 *   await connection.request("list", {})     starts the server when it does not run
 *   connection.onReady(...)                  a server is there: fetch what is known so far
 *   connection.onGone(...)                   it ended, and what it knew with it
 */

import { type ChildProcess, spawn } from "node:child_process";
import * as vscode from "vscode";
import {
  CloseAction,
  type CloseHandlerResult,
  type DynamicFeature,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  ResponseError,
  State,
  type StaticFeature,
} from "vscode-languageclient/node";
import { type Calls, methods, notifications, type PermissionParams, type PermissionResult, type ProgressParams, serverRequests, VERSION } from "./protocol";
import { message } from "./text";

const SECRET = "agentLs.apiKey";
const LAST_WORDS_MS = 1000;
const CRASHES = 4;
const CRASH_WINDOW_MS = 3 * 60_000;
type Answering = (params: PermissionParams, token: vscode.CancellationToken) => Promise<PermissionResult>;

export class Connection implements vscode.Disposable {
  private readonly ready = new vscode.EventEmitter<void>();
  private readonly gone = new vscode.EventEmitter<string>();
  private readonly progress = new vscode.EventEmitter<ProgressParams>();
  readonly onReady = this.ready.event;
  readonly onGone = this.gone.event;
  readonly onProgress = this.progress.event;
  /** Answers the server's permission requests. */
  answering: Answering | undefined;
  /** Why there is no server, once there was one or one was wanted. */
  fault: string | undefined;

  private client: AgentClient | undefined;
  private starting: Promise<AgentClient> | undefined;
  private crashes: number[] = [];
  private stderr = "";
  /** How the server's process ended, once it did. */
  private exit: string | undefined;
  private ran = false;
  private over: Promise<void> = Promise.resolve();
  private readonly output = vscode.window.createOutputChannel("Agent Language Server", { log: true });

  private readonly watching = vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration("agentLs")) {
      this.settingsChanged(event.affectsConfiguration("agentLs.command"));
    }
  });

  constructor(private readonly secrets: vscode.SecretStorage) {}

  get running(): boolean {
    return this.client?.state === State.Running;
  }

  /** Starts the server when it does not run. What fails is thrown, not shown. */
  async request<Name extends keyof Calls>(
    name: Name,
    params: Calls[Name]["params"],
    token?: vscode.CancellationToken,
  ): Promise<Calls[Name]["result"]> {
    const client = await this.start();
    // An undefined token would be sent along as a second parameter.
    return token ? client.sendRequest(methods[name], params, token) : client.sendRequest(methods[name], params);
  }

  async diagnostics(list: vscode.Diagnostic[]): Promise<Record<string, unknown>[]> {
    const client = await this.start();
    const converted = await client.code2ProtocolConverter.asDiagnostics(list);
    return converted.map((each) => ({ ...each }));
  }

  async start(): Promise<AgentClient> {
    if (this.client && this.running) {
      return this.client;
    }
    this.starting ??= this.begin().finally(() => {
      this.starting = undefined;
    });
    return this.starting;
  }

  async restart(): Promise<void> {
    // A start that is under way has the old settings.
    await this.starting?.catch(() => undefined);
    await this.stop();
    this.crashes = [];
    await this.start();
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client) {
      await client.stop(5000).catch(() => undefined);
      await client.dispose().catch(() => undefined);
      this.gone.fire("it was stopped");
    }
  }

  async setApiKey(key: string): Promise<void> {
    await (key ? this.secrets.store(SECRET, key) : this.secrets.delete(SECRET));
  }

  showOutput(): void {
    this.output.show(true);
  }

  dispose(): void {
    void this.stop();
    this.watching.dispose();
    this.output.dispose();
    for (const emitter of [this.ready, this.gone, this.progress]) {
      emitter.dispose();
    }
  }

  // Start and end

  private async begin(): Promise<AgentClient> {
    // A client that is restarting by itself is waited for.
    if (this.client?.state === State.Starting) {
      await this.client.start();
      return this.client;
    }
    await this.client?.dispose().catch(() => undefined);
    const client = new AgentClient("agentLs", "Agent Language Server", () => this.launch(), await this.options());
    this.client = client;
    this.ran = false;
    this.follow(client);
    try {
      await client.start();
    } catch (error) {
      if (this.client === client) {
        this.client = undefined;
      }
      // What it wrote and how it ended may be told a moment later than that it is gone.
      await Promise.race([this.over, new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS))]);
      throw this.failed(error);
    }
    return client;
  }

  private follow(client: AgentClient): void {
    client.onRequest(serverRequests.permission, (params: PermissionParams, token: vscode.CancellationToken) => {
      if (!this.answering) {
        throw new ResponseError(-32603, "nobody can answer yet");
      }
      return this.answering(params, token);
    });
    client.onNotification(notifications.progress, (params: ProgressParams) => this.progress.fire(params));
    client.onDidChangeState(({ oldState, newState }) => {
      if (this.client !== client) {
        return;
      }
      if (newState === State.Running) {
        this.ran = true;
        this.fault = undefined;
        this.ready.fire();
      } else if (oldState === State.Running) {
        this.gone.fire("it ended");
      }
    });
  }

  private async options(): Promise<LanguageClientOptions> {
    return {
      documentSelector: [{ scheme: "file" }],
      outputChannel: this.output,
      initializationOptions: {
        trusted: vscode.workspace.isTrusted,
        settings: settings(),
        ...(await this.apiKey()),
      },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => this.closed(),
      },
      middleware: {
        workspace: {
          configuration: (params) => params.items.map((item) => (item.section === "agentLs" ? settings() : null)),
        },
      },
    };
  }

  private settingsChanged(isCommand: boolean): void {
    if (this.client && this.running) {
      void this.client.sendNotification("workspace/didChangeConfiguration", { settings: { agentLs: settings() } });
    } else if (isCommand && this.fault !== undefined) {
      void this.restart().catch(() => undefined);
    }
  }

  private async apiKey(): Promise<{ apiKey?: string }> {
    const apiKey = await this.secrets.get(SECRET);
    return apiKey ? { apiKey } : {};
  }

  private launch(): Promise<ChildProcess> {
    const [program, ...args] = command();
    const cwd = vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === "file")?.uri.fsPath;
    this.stderr = "";
    this.exit = undefined;
    return new Promise((resolve, reject) => {
      const child = spawn(program, args, { ...(cwd ? { cwd } : {}), stdio: "pipe" });
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        this.stderr = (this.stderr + text).slice(-4000);
      });
      child.once("error", (error: NodeJS.ErrnoException) => reject(new Error(spawnFault(program, error))));
      child.once("spawn", () => resolve(child));
      this.over = new Promise((done) => child.once("close", () => done()));
      child.once("exit", (code, signal) => {
        this.exit = signal ? `by ${signal}` : `with exit code ${String(code)}`;
      });
    });
  }

  private closed(): CloseHandlerResult {
    const now = Date.now();
    this.crashes = [...this.crashes.filter((at) => now - at < CRASH_WINDOW_MS), now];
    this.fault = `agent-ls ended unexpectedly. ${this.lastWords()}`;
    // One that never ran is not tried again: `begin` tells why.
    if (!this.ran) {
      return { action: CloseAction.DoNotRestart, handled: true };
    }
    if (this.crashes.length < CRASHES) {
      const words = ["agent-ls ended unexpectedly. What ran can be resumed.", this.lastWords()];
      void vscode.window.showWarningMessage(words.filter((part) => part).join(" "));
      return { action: CloseAction.Restart, handled: true };
    }
    void this.offerHelp(`agent-ls ended ${CRASHES} times in three minutes and is not started again. ${this.lastWords()}`);
    return { action: CloseAction.DoNotRestart, handled: true };
  }

  private failed(error: unknown): Error {
    const what = this.exit === undefined ? message(error) : `It ended at once, ${this.exit}.`;
    this.fault = [what, this.lastWords()].filter((part) => part).join(" ");
    this.gone.fire(this.fault);
    void this.offerHelp(`The agent server could not be started. ${this.fault}`);
    return new Shown(this.fault);
  }

  /** The last line that the server wrote to stderr. */
  private lastWords(): string {
    const line = this.stderr.trim().split("\n").at(-1)?.trim();
    return line ? `It said: ${line}` : "";
  }

  private async offerHelp(text: string): Promise<void> {
    const chosen = await vscode.window.showErrorMessage(text, "Try Again", "Open Settings", "Show Output");
    if (chosen === "Try Again") {
      await this.restart().catch(() => undefined);
    } else if (chosen === "Open Settings") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "agentLs.command");
    } else if (chosen === "Show Output") {
      this.showOutput();
    }
  }
}

/** A fault that the person has been told. */
export class Shown extends Error {}

/** Says what we can, and leaves documents of our schemes to `documents.ts`, which knows when they change. */
class AgentClient extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    const method = "registrationType" in feature ? feature.registrationType.method : "";
    if (method !== "workspace/textDocumentContent") {
      super.registerFeature(feature);
    }
  }

  /** Its own words stay in the output: what fails is told once, by whoever asked. */
  override error(text: string, data?: unknown): void {
    super.error(text, data, false);
  }

  protected override fillInitializeParams(params: Parameters<LanguageClient["fillInitializeParams"]>[0]): void {
    super.fillInitializeParams(params);
    const agent = { version: VERSION, progress: true, textDeltas: true, permission: true, question: false, review: true };
    params.capabilities.experimental = { agent };
  }
}

function command(): [string, ...string[]] {
  const found = vscode.workspace.getConfiguration("agentLs").get<unknown>("command");
  const parts = Array.isArray(found) ? found.filter((part): part is string => typeof part === "string" && part !== "") : [];
  const [program, ...args] = parts;
  return program === undefined ? ["agent-ls", "serve"] : [program, ...args];
}

function spawnFault(program: string, error: NodeJS.ErrnoException): string {
  if (error.code === "ENOENT") {
    return `"${program}" was not found on the PATH of VS Code. Install it, or set "agentLs.command" to where it is.`;
  }
  return `"${program}" cannot be run (${error.code ?? error.message}). Set "agentLs.command" to the server's program.`;
}

/** What the person has set; what is left empty is the server's to decide. */
function settings(): Record<string, unknown> {
  const config = vscode.workspace.getConfiguration("agentLs");
  const found: Record<string, unknown> = {};
  for (const name of ["model", "baseUrl", "maxConcurrentAgents"]) {
    const value = config.get<unknown>(name);
    if (value !== undefined && value !== null && value !== "") {
      found[name] = value;
    }
  }
  const worktree: Record<string, string> = {};
  for (const name of ["base", "location"]) {
    const value = config.get<string>(`worktree.${name}`);
    if (value) {
      worktree[name] = value;
    }
  }
  return Object.keys(worktree).length > 0 ? { ...found, worktree } : found;
}
