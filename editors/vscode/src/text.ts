/** Small texts, the same everywhere. */

/** Characters that a view would hide, reorder or join are written out; `keep` are left as they are. */
export function visible(text: string, keep = ""): string {
  const written = text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (char) =>
    keep.includes(char) ? char : `\\u${(char.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
  return written.replace(/ {8,}/g, (run) => `<${run.length} spaces>`);
}

/** The same for text whose lines stay lines. */
export function visibleLines(text: string): string {
  return visible(text, "\n\t");
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) {
    return `${seconds} s`;
  }
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function count(number: number): string {
  if (number < 1000) {
    return String(number);
  }
  return number < 1_000_000 ? `${(number / 1000).toFixed(1)}k` : `${(number / 1_000_000).toFixed(1)}M`;
}

interface Named {
  agentType: string;
  description: string;
}

export function who(agent: Named): string {
  return agent.description ? `${agent.agentType} (${visible(agent.description)})` : agent.agentType;
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
