/** The flags that choose how an engine reuses and guesses, of every command that answers prompts. */
export const ENGINE_ARGS = {
  policies: {
    type: 'string',
    description: 'Reuse policies: auto, or ROLE=POLICY between commas; else as the model has them',
    valueHint: 'auto|ROLE=POLICY,…',
  },
  drafts: {
    type: 'string',
    description: 'Tokens to guess ahead from what was said before; changes no answer',
    valueHint: 'N',
    default: '0',
  },
} as const;
