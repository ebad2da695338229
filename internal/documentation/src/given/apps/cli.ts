export { OpenAI } from 'openai';

export const messages = [{ role: 'user' as const, content: 'Where is the white whale?' }];
