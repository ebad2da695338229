import { type ExportOptions, exportPrefix, type PrefixExport } from '@bufferwise/adapter-connectors/prefix-file';
import type { HybridEngine } from '@bufferwise/hybrid-engine';
import { CliError } from '../cli-error.ts';

/**
 * The prefix of a prompt, which is computed and saved first where the store does not have all of it that can be saved.
 *
 * @param engine keeps its prefixes in the store of `options`
 * @throws {CliError} when the prompt has no whole block, or the store took no prefix of it
 */
export async function computePrefix(
  engine: HybridEngine,
  prompt: Uint32Array,
  options: Omit<ExportOptions, 'tokens'>,
): Promise<PrefixExport> {
  const { tokensPerBlock } = engine.manager.layout;
  // The last token of a prompt is always left to be computed.
  const length = prompt.length - 1 - ((prompt.length - 1) % tokensPerBlock);
  if (length === 0)
    throw new CliError(
      `the prompt has ${prompt.length} tokens, and a prefix is whole blocks of ${tokensPerBlock} with a token behind them; take a longer one`,
    );
  const tokens = prompt.subarray(0, length);
  const found = await exportPrefix({ ...options, tokens });
  if (found !== null && found.info.tokens.length === length) return found;
  await engine.complete({ prompt, maxNewTokens: 1, scope: options.scope, signal: options.signal });
  await engine.saved();
  const computed = await exportPrefix({ ...options, tokens });
  if (computed !== null && computed.info.tokens.length === length) return computed;
  throw new CliError('the store did not keep all of the prefix; give it more with --store-memory, or leave --store out');
}
