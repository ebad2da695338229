export declare const userId: number;
export declare const prompt: number[];
export declare const other: number[];
export declare const eos: number;
export declare function show(token: number): void;
export declare const signal: AbortSignal;
