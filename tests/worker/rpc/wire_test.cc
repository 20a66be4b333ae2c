// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ATen/ops/ones.h"
#include "tests/worker/rpc/job.h"
#include "tests/worker/rpc/test_classes.h"
#include "worker/rpc/wire_message.h"

namespace disttrain::rpc {
namespace {

using internal::ParseHeader;
using testing::Counter;
using testing::Everything;
using ::testing::HasSubstr;

v1::RpcHeader CallWith(const std::function<void(v1::RpcHeader&)>& change) {
  v1::RpcHeader header;
  header.mutable_call()->set_call_id(5000);  // none of rank 0's own
  change(header);
  return header;
}

std::string Refused(const v1::RpcHeader& header,
                    const std::vector<uint64_t>& sizes) {
  const auto message = ParseHeader(header.SerializeAsString());
  if (!message.ok()) return message.status().ToString();
  return internal::AllocateTensors(sizes, **message).ToString();
}

TEST(Header, MustBeOneOfOurs) {
  EXPECT_THAT(ParseHeader("").status().ToString(), HasSubstr("without a kind"));
  EXPECT_THAT(ParseHeader("\xff\xff\xff garbage").status().ToString(),
              HasSubstr("is no RpcHeader"));
}

TEST(Header, NestsAtMost32Lists) {
  const auto nested = [](int depth) {
    return CallWith([&](v1::RpcHeader& header) {
      v1::Value* value = header.mutable_call()->add_arguments();
      for (int i = 0; i < depth; ++i) {
        value = value->mutable_list()->add_values();
      }
      value->set_integer(1);
    });
  };
  EXPECT_EQ(Refused(nested(32), {}), "OK");
  EXPECT_THAT(Refused(nested(40), {}), HasSubstr("nests deeper than 32"));
}

TEST(Header, TensorsMustFitTheirBuffers) {
  const auto tensor = [](int dtype, std::vector<int64_t> sizes) {
    return CallWith([&](v1::RpcHeader& header) {
      v1::TensorHeader* out = header.add_tensors();
      out->set_dtype(dtype);
      for (const int64_t size : sizes) out->add_sizes(size);
    });
  };
  const int kFloat = static_cast<int>(at::kFloat);
  EXPECT_EQ(Refused(tensor(kFloat, {2, 3}), {24}), "OK");
  EXPECT_EQ(Refused(tensor(kFloat, {0, 3}), {0}), "OK");
  EXPECT_THAT(Refused(tensor(kFloat, {2, 3}), {23}),
              HasSubstr("needs 24 bytes, its buffer has 23"));
  EXPECT_THAT(Refused(tensor(kFloat, {2, 3}), {}), HasSubstr("not come"));
  EXPECT_THAT(Refused(tensor(kFloat, {1}), {4, 4}),
              HasSubstr("2 buffers for 1 tensors"));
  EXPECT_THAT(Refused(tensor(kFloat, {-1}), {4}), HasSubstr("is negative"));
  EXPECT_THAT(Refused(tensor(kFloat, {1LL << 40, 1LL << 40}), {4}),
              HasSubstr("overflows"));
  EXPECT_THAT(Refused(tensor(kFloat, {0, 1LL << 40, 1LL << 40}), {0}),
              HasSubstr("overflows"));
  EXPECT_THAT(Refused(tensor(12, {1}), {1}), HasSubstr("unknown dtype 12"));
  EXPECT_THAT(Refused(tensor(-5, {1}), {1}), HasSubstr("unknown dtype -5"));
  EXPECT_THAT(Refused(tensor(1000, {1}), {1}), HasSubstr("unknown dtype"));
  EXPECT_THAT(Refused(tensor(kFloat, std::vector<int64_t>(65, 1)), {4}),
              HasSubstr("65 dimensions"));
}

TEST(Header, HasBoundedCounts) {
  EXPECT_THAT(Refused(CallWith([](v1::RpcHeader& header) {
                        for (int i = 0; i < 65; ++i) {
                          header.mutable_call()->add_arguments();
                        }
                      }),
                      {}),
              HasSubstr("65 arguments"));
  EXPECT_THAT(Refused(CallWith([](v1::RpcHeader& header) {
                        for (int i = 0; i < 5000; ++i) header.add_references();
                      }),
                      {}),
              HasSubstr("5000 references"));
}

TEST(Header, BoolBytesAreNormalised) {
  const auto message = ParseHeader(CallWith([](v1::RpcHeader& header) {
                                     header.add_tensors()->set_dtype(
                                         static_cast<int>(at::kBool));
                                     header.mutable_tensors(0)->add_sizes(2);
                                   }).SerializeAsString());
  ASSERT_TRUE(message.ok());
  ASSERT_TRUE(internal::AllocateTensors({2}, **message).ok());
  auto* bytes = static_cast<uint8_t*>((*message)->tensors[0].data_ptr());
  bytes[0] = 0;
  bytes[1] = 0xa5;
  internal::NormaliseTensors(**message);
  EXPECT_EQ(bytes[1], 1);
}

// What a hostile (or broken) peer may send: an error reply, or the connection
// goes; never a crash.
class Hostile : public ::testing::Test {
 protected:
  // Sends a header to rank 1 as rank 0's.
  void Send(const v1::RpcHeader& header) {
    transport::Message message;
    message.header = header.SerializeAsString();
    job_.endpoint(1).Inject({0, 0}, std::move(message));
  }
  // True if rank 1 still serves rank 0.
  bool Serves() {
    const Agent::Scope scope(job_.agent(0));
    return Remote<Counter>(1, 5).Sync(&Counter::Get) == 5;
  }

  Job job_{2, Everything()};
};

TEST_F(Hostile, ValuesThatNameWhatIsNotThere) {
  for (const auto kind : {0, 1, 2, 3}) {
    Send(CallWith([&](v1::RpcHeader& header) {
      header.mutable_call()->set_call_id(1000 + static_cast<uint64_t>(kind));
      header.mutable_call()->set_class_name(
          std::string(RemoteTraits<Counter>::kName));
      v1::Value* value = header.mutable_call()->add_arguments();
      if (kind == 1) value->set_tensor(7);
      if (kind == 2) value->set_reference(9);
      if (kind == 3) value->set_unsigned_integer(UINT64_MAX);
    }));
  }
  EXPECT_TRUE(Serves());
}

TEST_F(Hostile, RepliesForksAndReleasesNobodyAskedFor) {
  v1::RpcHeader header;
  header.mutable_reply()->set_call_id(12345);
  Send(header);
  header.mutable_reply()->mutable_result()->set_reference(3);
  header.add_references()->set_class_name("X");
  Send(header);
  header.clear_references();
  header.mutable_cancel()->set_call_id(99);
  Send(header);
  header.mutable_fork()->mutable_object()->set_object(77);
  Send(header);
  header.mutable_fork_reply()->set_request_id(3);
  Send(header);
  header.mutable_release()->mutable_object()->set_object(77);
  Send(header);
  header.mutable_received()->set_call_id(4);
  Send(header);
  EXPECT_TRUE(Serves());
}

TEST_F(Hostile, ObjectsThatNeverWereAndUnknownMethods) {
  Send(CallWith([](v1::RpcHeader& header) {
    header.mutable_call()->mutable_target()->set_owner_rank(1);
    header.mutable_call()->mutable_target()->set_object(4242);
    header.mutable_call()->set_method("Add");
  }));
  Send(CallWith([](v1::RpcHeader& header) {
    header.mutable_call()->set_class_name("std::system");
  }));
  EXPECT_TRUE(Serves());
}

TEST_F(Hostile, GarbageLosesThePeerByName) {
  transport::Message message;
  message.header = "\xff\xff\xff garbage";
  job_.endpoint(1).Inject({0, 0}, std::move(message));
  EXPECT_TRUE(job_.Eventually(1, [](const AgentStatistics& now) {
    return now.malformed_messages == 1;
  }));
  const Agent::Scope scope(job_.agent(1));
  EXPECT_THAT(MessageOfThrow<PeerLost>([] { Remote<Counter>(0, 1); }),
              HasSubstr("malformed message: header of"));
}

}  // namespace
}  // namespace disttrain::rpc
