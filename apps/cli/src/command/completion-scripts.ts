import type { ArgsDef } from 'citty';
import type { Command } from './command.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A script that teaches a shell the commands, their options and what these may be. */
export function completionScript(shell: Shell, commands: readonly Command[]): string {
  switch (shell) {
    case 'bash':
      return bashScript(commands);
    case 'zsh':
      return zshScript(commands);
    case 'fish':
      return fishScript(commands);
  }
}

/** What an option takes: one of these words, a file, anything else, or nothing. */
type Value = { kind: 'words'; words: readonly string[] } | { kind: 'file' } | { kind: 'text' } | { kind: 'none' };

interface Option {
  readonly name: string;
  readonly description: string;
  readonly value: Value;
}

function optionsOf({ args }: Command): Option[] {
  const own = Object.entries(args)
    .filter(([, { type }]) => type !== 'positional')
    .map(([name, option]) => ({ name, description: option.description ?? '', value: whatItTakes(option) }));
  return [...own, { name: 'help', description: 'What the command does, with examples', value: { kind: 'none' } }];
}

function whatItTakes(option: ArgsDef[string]): Value {
  if (option.type === 'boolean') return { kind: 'none' };
  if (option.type === 'enum') return { kind: 'words', words: option.options ?? [] };
  return /FILE|DIR/.test(option.valueHint ?? '') ? { kind: 'file' } : { kind: 'text' };
}

function operandWords({ operandValues = {} }: Command): string[] {
  return Object.values(operandValues).flat();
}

/** Where no word is offered, bash falls back to files. */
function bashScript(commands: readonly Command[]): string {
  const values = commands.flatMap((command) =>
    optionsOf(command).flatMap(({ name, value }) => {
      if (value.kind === 'none') return [];
      return [`      "${command.name} --${name}") words="${value.kind === 'words' ? value.words.join(' ') : ''}" ;;`];
    }),
  );
  const words = commands.map((command) => {
    const offered = [...optionsOf(command).map(({ name }) => `--${name}`), ...operandWords(command)];
    return `          ${command.name}) words="${offered.join(' ')}" ;;`;
  });
  return [
    '# bufferwise: completions for bash. Put this into ~/.bashrc: source <(bufferwise completion bash)',
    '_bufferwise() {',
    `  local word="\${COMP_WORDS[COMP_CWORD]}" words=""`,
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    words="${commands.map(({ name }) => name).join(' ')} --help"`,
    '  else',
    `    case "\${COMP_WORDS[1]} \${COMP_WORDS[COMP_CWORD - 1]}" in`,
    ...values,
    '      *)',
    `        case "\${COMP_WORDS[1]}" in`,
    ...words,
    '        esac ;;',
    '    esac',
    '  fi',
    '  COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '}',
    'complete -o default -F _bufferwise bufferwise',
    '',
  ].join('\n');
}

function zshScript(commands: readonly Command[]): string {
  const cases = commands.flatMap((command) => [
    `    ${command.name})`,
    '      _arguments \\',
    ...optionsOf(command).map(({ name, description, value }) => {
      const what = { none: '', file: `:${name}:_files`, text: `:${name}:`, words: '' }[value.kind];
      const words = value.kind === 'words' ? `:${name}:(${value.words.join(' ')})` : what;
      return `        ${quoted(`--${name}[${description.replaceAll(/[[\]:]/g, ' ')}]${words}`)} \\`;
    }),
    operandWords(command).length === 0
      ? `        '*:file:_files' ;;`
      : `        ${quoted(`*: :{ compadd -- ${operandWords(command).join(' ')}; _files }`)} ;;`,
  ]);
  return [
    '#compdef bufferwise',
    '# bufferwise: completions for zsh. Put this into ~/.zshrc: source <(bufferwise completion zsh)',
    '_bufferwise() {',
    '  local -a commands',
    '  commands=(',
    ...commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`),
    '  )',
    '  if (( CURRENT == 2 )); then',
    "    _describe 'command' commands",
    '    return',
    '  fi',
    '  shift words',
    '  (( CURRENT-- ))',
    '  case $words[1] in',
    ...cases,
    '  esac',
    '}',
    'compdef _bufferwise bufferwise',
    '',
  ].join('\n');
}

function fishScript(commands: readonly Command[]): string {
  const rows = commands.flatMap((command) => {
    const seen = `complete -c bufferwise -n '__fish_seen_subcommand_from ${command.name}'`;
    const words = operandWords(command);
    return [
      `complete -c bufferwise -n __fish_use_subcommand -f -a ${command.name} -d ${quoted(command.summary)}`,
      ...(words.length === 0 ? [] : [`${seen} -a ${quoted(words.join(' '))}`]),
      ...optionsOf(command).map(({ name, description, value }) => {
        const takes = { none: '', file: ' -r -F', text: ' -x', words: ' -x' }[value.kind];
        const offered = value.kind === 'words' ? ` -a ${quoted(value.words.join(' '))}` : '';
        return `${seen} -l ${name}${takes}${offered} -d ${quoted(description)}`;
      }),
    ];
  });
  return [
    '# bufferwise: completions for fish. Put this into ~/.config/fish/config.fish: bufferwise completion fish | source',
    ...rows,
    '',
  ].join('\n');
}

/** For shells, in single quotes. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
