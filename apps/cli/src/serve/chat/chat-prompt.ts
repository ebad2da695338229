import type { TextTokenizer } from '@bufferwise/hybrid-engine';
import type { ChatMessage, ChatTemplate } from './chat-template.ts';

/** A prompt in tokens, and where one turn of it ends. */
export interface PromptTokens {
  readonly tokens: Uint32Array;
  /** Token counts, ascending. */
  readonly turnBorders: readonly number[];
}

/**
 * The tokens of a conversation. Its borders are behind the system prompt, which conversations share, and behind the last message: what
 * follows depends on who speaks next.
 *
 * @param maxTokens of a longer one no borders are looked for: it will be refused
 */
export function chatPrompt(
  encode: TextTokenizer['encode'],
  template: ChatTemplate,
  messages: readonly ChatMessage[],
  maxTokens: number,
): PromptTokens {
  const text = template.render(messages, true);
  const tokens = encode(text);
  if (tokens.length > maxTokens) return { tokens, turnBorders: [] };
  const borders = new Set<number>();
  for (const end of bordersOf(messages)) {
    const border = tokensOfBeginning(encode, template, messages.slice(0, end), text, tokens);
    if (border > 0) borders.add(border);
  }
  return { tokens, turnBorders: [...borders].sort((a, b) => a - b) };
}

function bordersOf(messages: readonly ChatMessage[]): number[] {
  const isShared = messages[0].role === 'system' && messages.length > 1;
  return isShared ? [1, messages.length] : [messages.length];
}

/** How many tokens of a conversation are those of its first messages; 0 where they stand in another way there. */
function tokensOfBeginning(
  encode: TextTokenizer['encode'],
  template: ChatTemplate,
  messages: readonly ChatMessage[],
  text: string,
  tokens: Uint32Array,
): number {
  const beginning = rendered(template, messages);
  if (beginning === null || !text.startsWith(beginning)) return 0;
  const ids = encode(beginning);
  return ids.every((id, i) => id === tokens[i]) ? ids.length : 0;
}

/** Null where the template wants more messages than these. */
function rendered(template: ChatTemplate, messages: readonly ChatMessage[]): string | null {
  try {
    return template.render(messages, false);
  } catch {
    return null;
  }
}
