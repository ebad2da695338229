import { Template } from '@huggingface/jinja';
import { CliError } from '../../cli-error.ts';
import { ApiError } from '../http/api-error.ts';

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
  readonly name?: string;
}

/** Makes one text of a conversation, in the form that a model was trained with. */
export interface ChatTemplate {
  /** Where it comes from: a file, or `plain`. */
  readonly origin: string;
  /** Where an answer ends besides the model's own end. */
  readonly stops: readonly string[];
  /**
   * @param open whether the text ends where the assistant's answer begins
   * @throws {ApiError} 400 when the template refuses the conversation
   */
  render(messages: readonly ChatMessage[], open: boolean): string;
}

const SPEAKERS = { system: 'System', user: 'User', assistant: 'Assistant' } as const;

/**
 * For models that bring no template: each message on lines of its own behind its speaker. Models that were not trained on conversations
 * go on with the next question, so an answer ends where another speaker begins.
 */
export const plainTemplate: ChatTemplate = {
  origin: 'plain',
  stops: ['\nUser:', '\nSystem:'],
  render(messages, open) {
    const lines = messages.map(({ role, content }) => `${SPEAKERS[role]}: ${content}\n`);
    return lines.join('') + (open ? `${SPEAKERS.assistant}:` : '');
  },
};

export interface SpecialTexts {
  readonly bosToken: string;
  readonly eosToken: string;
}

/**
 * A template in Jinja, as GGUF files and `tokenizer_config.json` have it.
 *
 * @throws {CliError} when it cannot be parsed
 */
export function jinjaTemplate(source: string, origin: string, { bosToken, eosToken }: SpecialTexts): ChatTemplate {
  const template = parse(source, origin);
  return {
    origin,
    stops: [],
    render(messages, open) {
      try {
        return template.render({
          messages: messages.map((message) => ({ ...message })),
          add_generation_prompt: open,
          bos_token: bosToken,
          eos_token: eosToken,
        });
      } catch (cause) {
        const message = `the chat template of this model refuses the messages: ${(cause as Error).message}`;
        throw new ApiError(message, { status: 400, code: 'chat_template', param: 'messages', cause });
      }
    },
  };
}

function parse(source: string, origin: string): Template {
  try {
    return new Template(source);
  } catch (cause) {
    throw new CliError(
      `the chat template of ${origin} cannot be parsed: ${(cause as Error).message}; give another with --chat-template`,
    );
  }
}
