/** Only puts the parts together. The server is started by the first thing that needs it. */

import type * as vscode from "vscode";
import { Agents, AgentsView } from "./agents";
import { Connection } from "./client";
import { registerCommands } from "./commands";
import { Documents } from "./documents";
import { Asks } from "./permission";
import { Reviews } from "./review";

export function activate(context: vscode.ExtensionContext): void {
  const connection = new Connection(context.secrets);
  const agents = new Agents(connection);
  const asks = new Asks(connection);
  const documents = new Documents(connection, agents);
  const reviews = new Reviews(connection, agents);
  const view = new AgentsView(connection, agents, asks);
  context.subscriptions.push(connection, agents, asks, documents, reviews, view);
  context.subscriptions.push(...registerCommands({ connection, agents, asks, documents, reviews }));
}
