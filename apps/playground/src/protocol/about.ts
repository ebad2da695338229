import type { ReusePolicy } from '@bufferwise/core-policy';

/** What can be chosen about the engine. Another choice is another engine, which has forgotten everything. */
export interface EngineSettings {
  /** Bytes of device memory for all pages. */
  readonly deviceBytes: number;
  /** Bytes of host memory for pages that leave the device; 0 for none. */
  readonly hostBytes: number;
  /** Tokens guessed ahead at most; 0 for none, and for no replay rings. */
  readonly maxDrafts: number;
  /** Tokens of one conversation that are read in one step at most. */
  readonly chunkTokens: number;
  /** Whether blocks that a long step leaves behind its windows share a few slots, instead of having a page each. */
  readonly scratch: boolean;
  /** Reuse policies by `layer.role`; what is not named keeps the policy that its layer has. */
  readonly policies: Readonly<Record<string, ReusePolicy>>;
}

/** One buffer group: what it is called, and what a page of it holds. */
export interface GroupAbout {
  readonly id: number;
  readonly name: string;
  /** Which buffers, for people. */
  readonly holds: string;
  readonly policy: ReusePolicy;
  readonly kind: 'attention' | 'ssm';
}

export interface LayerAbout {
  readonly layerId: number;
  readonly name: string;
  /** Roles of its buffers, with the policy that each has now. */
  readonly buffers: readonly { readonly role: string; readonly policy: ReusePolicy }[];
}

/** What an engine is, once it is there. */
export interface EngineAbout {
  readonly model: string;
  readonly device: string;
  readonly numParameters: number;
  readonly tokensPerBlock: number;
  readonly settings: EngineSettings;
  /** The least device memory that its pools can do with, bytes. */
  readonly leastDeviceBytes: number;
  readonly layers: readonly LayerAbout[];
  /** Index = group id. */
  readonly groups: readonly GroupAbout[];
  /** Whether prefixes are kept beyond a reload of the page, and why not. */
  readonly keeps: { readonly kept: true } | { readonly kept: false; readonly why: string };
}
