#include <gtest/gtest.h>

#include "token/tokenizer.h"

namespace tokenstone::token {
namespace {

std::vector<ChatTurn> talk() {
  return {{"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello"}, {"user", "Bye"}};
}

std::string render(ChatFamily family) { return render_chat(family, talk()).value(); }

TEST(Chat, RendersEachFamily) {
  EXPECT_EQ(render(ChatFamily::chatml),
            "<|im_start|>system\nBe "
            "brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"
            "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(ChatFamily::llama3),
            "<|start_header_id|>system<|end_header_id|>\n\nBe "
            "brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>user<|end_header_id|>"
            "\n\nBye<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(render(ChatFamily::llama2),
            "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello </s><s>[INST] Bye [/INST]");
  EXPECT_EQ(render(ChatFamily::mistral), "[INST] Be brief.\n\nHi [/INST]Hello</s>[INST] Bye [/INST]");
  EXPECT_EQ(
      render(ChatFamily::zephyr),
      "<|system|>\nBe brief.</s>\n<|user|>\nHi</s>\n<|assistant|>\nHello</s>\n<|user|>\nBye</s>\n<|assistant|>\n");
  EXPECT_EQ(
      render(ChatFamily::gemma),
      "<start_of_turn>user\nBe "
      "brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nHello<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n"
      "<start_of_turn>model\n");
}

TEST(Chat, RecognisesByMarks) {
  EXPECT_EQ(recognise_chat_template("").value(), ChatFamily::chatml);
  EXPECT_EQ(recognise_chat_template("{{'<|im_start|>' + role}}").value(), ChatFamily::chatml);
  EXPECT_EQ(recognise_chat_template("{{'<|start_header_id|>'}}").value(), ChatFamily::llama3);
  EXPECT_EQ(recognise_chat_template("[INST] <<SYS>>").value(), ChatFamily::llama2);
  EXPECT_EQ(recognise_chat_template("[INST] ").value(), ChatFamily::mistral);
  EXPECT_EQ(recognise_chat_template("<|user|> <|assistant|>").value(), ChatFamily::zephyr);
  EXPECT_EQ(recognise_chat_template("<start_of_turn>").value(), ChatFamily::gemma);
}

TEST(Chat, RefusesOthersByName) {
  const auto phi = recognise_chat_template("{{'<|user|>' + content + '<|end|>' + '<|assistant|>'}}");
  ASSERT_FALSE(phi);
  EXPECT_NE(phi.error().message.find("--chat-template-family"), std::string::npos);
  EXPECT_NE(phi.error().message.find("<|user|>"), std::string::npos);
  EXPECT_NE(parse_chat_family("chatlm").error().message.find("did you mean chatml"), std::string::npos);
  for (const ChatFamily family : {ChatFamily::chatml, ChatFamily::llama2, ChatFamily::llama3, ChatFamily::mistral,
                                  ChatFamily::zephyr, ChatFamily::gemma})
    EXPECT_EQ(parse_chat_family(to_string(family)).value(), family);
}

TEST(Chat, RefusesTurnsThatCannotBeExpressed) {
  const auto error = [](ChatFamily family, std::vector<ChatTurn> turns) {
    return render_chat(family, turns).error().message;
  };
  EXPECT_NE(error(ChatFamily::chatml, {}).find("at least one message"), std::string::npos);
  EXPECT_NE(error(ChatFamily::chatml, {{"tool", "x"}}).find("\"tool\""), std::string::npos);
  EXPECT_NE(error(ChatFamily::llama2, {{"user", "a"}, {"user", "b"}}).find("alternate"), std::string::npos);
  EXPECT_NE(error(ChatFamily::gemma, {{"user", "a"}, {"assistant", "b"}}).find("last message"), std::string::npos);
  EXPECT_NE(error(ChatFamily::mistral, {{"system", "a"}}).find("last message"), std::string::npos);
}

}  // namespace
}  // namespace tokenstone::token
