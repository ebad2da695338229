import type { Options } from 'tsup';

export declare function libraryConfig(entry?: Record<string, string>, platform?: { types?: string[] }): Options;
export declare function commandConfig(entry: Record<string, string>): Options;
