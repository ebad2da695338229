/** One command of a block of shell, as words. Quotes are gone; what is redirected or substituted is left out. */
export interface ShellCommand {
  /** Line of the block on which it begins, from 0. */
  readonly line: number;
  readonly words: readonly string[];
}

/** The commands of a block: one a line, or several with `|`, `&&` or `;` between. Comments are no commands. */
export function shellCommands(code: string): ShellCommand[] {
  const commands: ShellCommand[] = [];
  let open: { line: number; text: string } | undefined;
  for (const [line, content] of code.split('\n').entries()) {
    const text = (open?.text ?? '') + content.replace(/\\$/, ' ');
    const begun = open?.line ?? line;
    open = content.endsWith('\\') ? { line: begun, text } : undefined;
    if (open === undefined) commands.push(...commandsOf(text).map((words) => ({ line: begun, words })));
  }
  return commands;
}

const TOKEN = /\s+|#.*$|(?:'[^']*'|"[^"]*"|<\([^)]*\)|[^\s'"|&;>#]|(?<=\S)#)+|>>?|\|\|?|&&?|;/g;

function commandsOf(text: string): string[][] {
  const commands: string[][] = [[]];
  let redirects = false;
  for (const [token] of text.matchAll(TOKEN)) {
    if (/^\s|^#/.test(token)) continue;
    if (/^>/.test(token)) redirects = true;
    else if (/^[|&;]/.test(token)) commands.push([]);
    else if (redirects) redirects = false;
    else commands[commands.length - 1].push(token.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
  }
  return commands.filter((words) => words.length > 0);
}
