import { type Clock, systemClock } from '../clock.ts';
import type { PageEncoding } from '../encoding/page-codec.ts';
import { ConnectorError } from '../errors.ts';

/** What is worth keeping. */
export interface AdmissionOptions {
  /** Texts shorter than this are neither saved nor loaded. Tokens, default 0. */
  readonly minTokens?: number;
  /** Blocks are saved when they are seen for the second time, so that texts which never come again cost no writes. Default false. */
  readonly secondUse?: boolean;
  /** How many blocks seen once are remembered, the latest. Default 65 536. */
  readonly rememberedBlocks?: number;
}

/** How much may be under way. Loads wait for their turn; saves beyond it are given up, and counted. */
export interface BudgetOptions {
  /** Bytes read from memory and not stored yet. Default 256 MiB. */
  readonly savingBytes?: number;
  /** Bytes asked of the store and not written into memory yet. Default 256 MiB; one batch is always asked for. */
  readonly loadingBytes?: number;
  /** Bytes that saves hand to the store in a second; they wait for it within `savingBytes`. Default: no limit. */
  readonly savedBytesPerSecond?: number;
}

/** Milliseconds after which a store counts as not answering. */
export interface TimeoutOptions {
  /** After that, nothing is there. Default 1 000. */
  readonly lookupMs?: number;
  /** After that, pages that are not there have failed. Default 10 000. */
  readonly loadMs?: number;
  /** After that, a save is given up. Default 30 000. */
  readonly saveMs?: number;
  /** So long the pages of a finished request are kept for their saves. They were read before, so 0 is safe, too. Default 1 000. */
  readonly keepFinishedMs?: number;
}

export interface PageStoreConnectorOptions {
  /** Requests wait for their loads outside of steps. Default true; false: inside, layer by layer. */
  readonly asyncLoad?: boolean;
  readonly admission?: AdmissionOptions;
  readonly budget?: BudgetOptions;
  readonly timeouts?: TimeoutOptions;
  /** Keeps pages encoded, as `encodedStore` does, by the layout that is registered. Default: as they are. */
  readonly encoding?: PageEncoding;
  /** Default: that of this machine. */
  readonly clock?: Clock;
}

/** Options with nothing left open. */
export interface ConnectorSettings {
  readonly asyncLoad: boolean;
  readonly admission: Required<AdmissionOptions>;
  readonly budget: Required<BudgetOptions>;
  readonly timeouts: Required<TimeoutOptions>;
  readonly encoding: PageEncoding | null;
  readonly clock: Clock;
}

const MIB = 1 << 20;

/** Throws {ConnectorError} `invalid-option` on a number that is none, is below 0, or is 0 where nothing would go on. */
export function connectorSettings(options: PageStoreConnectorOptions): ConnectorSettings {
  const { asyncLoad = true, encoding = null, clock = systemClock } = options;
  const admission = { minTokens: 0, secondUse: false, rememberedBlocks: 65_536, ...options.admission };
  const budget = {
    savingBytes: 256 * MIB,
    loadingBytes: 256 * MIB,
    savedBytesPerSecond: Number.POSITIVE_INFINITY,
    ...options.budget,
  };
  const timeouts = { lookupMs: 1_000, loadMs: 10_000, saveMs: 30_000, keepFinishedMs: 1_000, ...options.timeouts };
  check('admission.minTokens', admission.minTokens, 0);
  check('admission.rememberedBlocks', admission.rememberedBlocks, 1);
  for (const [name, value] of Object.entries(budget)) check(`budget.${name}`, value, 1);
  for (const [name, value] of Object.entries(timeouts)) check(`timeouts.${name}`, value, 0);
  return { asyncLoad, admission, budget, timeouts, encoding, clock };
}

function check(name: string, value: number, least: number): void {
  if (value >= least) return;
  throw new ConnectorError(
    'invalid-option',
    `page store connector: ${name} is ${value}; pass a number from ${least} on, or leave it out`,
  );
}
