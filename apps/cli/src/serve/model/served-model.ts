import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { EngineModel, GgufMetadata, GgufModel, TextTokenizer } from '@bufferwise/hybrid-engine';
import { CliError } from '../../cli-error.ts';
import { readEngineModel } from '../../input/model-folder.ts';
import { type ChatTemplate, jinjaTemplate, plainTemplate, type SpecialTexts } from '../chat/chat-template.ts';

/** A model, and what its files say about how it wants to be asked. */
export interface ServedModel {
  /** The name by which it is asked for. */
  readonly id: string;
  readonly engineModel: EngineModel;
  /** The token that every prompt begins with; null for none. */
  readonly startToken: number | null;
  /** Tokens that end an answer. */
  readonly endTokens: readonly number[];
  readonly chatTemplate: ChatTemplate;
  /** Tokens of prompt and answer that it was trained for; null where the files do not say. */
  readonly contextLength: number | null;
}

export interface ServedModelOptions {
  /** Default: the name of the file or folder. */
  readonly id?: string;
  /** A Jinja file instead of the model's own template. */
  readonly templateFile?: string;
}

/**
 * Reads a model to be served: a GGUF file, or a folder with the demo model's files. A folder may have `tokenizer_config.json` and
 * `chat_template.jinja` besides.
 *
 * @throws {CliError} on files that are missing or not sound; {ModelError}
 */
export async function readServedModel(path: string, options: ServedModelOptions = {}): Promise<ServedModel> {
  const engineModel = await readEngineModel(path);
  const manners = isGguf(engineModel) ? mannersOfGguf(engineModel) : await mannersOfFolder(path, engineModel.tokenizer);
  const { template, texts, ...rest } = manners;
  const given = options.templateFile === undefined ? template : await templateOfFile(options.templateFile);
  const chatTemplate = given === null ? plainTemplate : jinjaTemplate(given.source, given.origin, texts);
  return { id: options.id ?? basename(path).replace(/\.gguf$/, ''), engineModel, ...rest, chatTemplate };
}

interface Manners extends Pick<ServedModel, 'startToken' | 'endTokens' | 'contextLength'> {
  readonly template: { readonly source: string; readonly origin: string } | null;
  readonly texts: SpecialTexts;
}

function isGguf(model: EngineModel): model is GgufModel {
  return 'metadata' in model;
}

function mannersOfGguf({ metadata, tokenizer }: GgufModel): Manners {
  const vocabulary = metadata.get('tokenizer.ggml.tokens') as readonly string[];
  const tokenOf = (name: string) => {
    const id = metadata.get(`tokenizer.ggml.${name}_token_id`);
    return typeof id === 'number' && id < tokenizer.vocabSize ? id : null;
  };
  const [bos, eos] = [tokenOf('bos'), tokenOf('eos')];
  const source = metadata.get('tokenizer.chat_template');
  return {
    startToken: metadata.get('tokenizer.ggml.add_bos_token') === true ? bos : null,
    endTokens: [...new Set([eos, tokenOf('eot'), tokenOf('eom')])].filter((id) => id !== null),
    contextLength: contextLengthOf(metadata),
    template: typeof source === 'string' ? { source, origin: 'the GGUF file' } : null,
    texts: { bosToken: bos === null ? '' : vocabulary[bos], eosToken: eos === null ? '' : vocabulary[eos] },
  };
}

function contextLengthOf(metadata: GgufMetadata): number | null {
  const length = metadata.get(`${metadata.get('general.architecture')}.context_length`);
  return typeof length === 'number' && length > 0 ? length : null;
}

async function mannersOfFolder(folder: string, tokenizer: TextTokenizer): Promise<Manners> {
  const name = 'tokenizer_config.json';
  const text = await optionalFile(join(folder, name));
  const config = text === null ? {} : parseConfig(text, name);
  const [bosToken, eosToken] = [tokenText(config.bos_token), tokenText(config.eos_token)];
  const eos = tokenizer.idOf(eosToken);
  return {
    startToken: config.add_bos_token === true ? (tokenizer.idOf(bosToken) ?? null) : null,
    // Without a word about it, whatever stands for no text ends one.
    endTokens: eos === undefined ? [...tokenizer.specialIds] : [eos],
    contextLength: null,
    template: await templateOfFolder(folder, config.chat_template),
    texts: { bosToken, eosToken },
  };
}

async function templateOfFolder(folder: string, inConfig: unknown): Promise<Manners['template']> {
  const own = await optionalFile(join(folder, 'chat_template.jinja'));
  if (own !== null) return { source: own, origin: 'chat_template.jinja' };
  const named = Array.isArray(inConfig) ? inConfig.find((each) => each?.name === 'default')?.template : inConfig;
  return typeof named === 'string' ? { source: named, origin: 'tokenizer_config.json' } : null;
}

async function templateOfFile(path: string): Promise<NonNullable<Manners['template']>> {
  const source = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new CliError(`cannot read ${path}: ${cause.code ?? cause}. --chat-template takes a Jinja file`);
  });
  return { source, origin: path };
}

async function optionalFile(path: string): Promise<string | null> {
  return (await stat(path).catch(() => null)) === null ? null : readFile(path, 'utf8');
}

function parseConfig(text: string, name: string): Record<string, unknown> {
  try {
    const config: unknown = JSON.parse(text);
    if (typeof config === 'object' && config !== null) return config as Record<string, unknown>;
  } catch (cause) {
    throw new CliError(`${name} is not JSON: ${(cause as Error).message}`);
  }
  throw new CliError(`${name} is no object`);
}

/** A token is named by its text, or by an object that has it. */
function tokenText(token: unknown): string {
  if (typeof token === 'string') return token;
  const content = (token as { content?: unknown } | null | undefined)?.content;
  return typeof content === 'string' ? content : '';
}
